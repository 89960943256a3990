"""Facts and history as a folder with MEMORY.md and HISTORY.md (LightGrep document)."""
