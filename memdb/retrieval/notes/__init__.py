"""Markdown notes with their index, and the retriever in three stages (local-ai document)."""

from __future__ import annotations
