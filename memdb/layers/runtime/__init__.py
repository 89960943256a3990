"""What an agent is doing: state, working memory, checkpoints, tool results, runs (local-ai document, L0 to L3)."""

from __future__ import annotations
