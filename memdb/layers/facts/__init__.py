"""Facts and history (LightGrep document): a text that stands in every prompt, and entries of what happened."""
