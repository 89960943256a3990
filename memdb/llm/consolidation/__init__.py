"""Consolidation under token pressure (LightGrep document): messages into history and facts."""
