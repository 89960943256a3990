"""Search by words and by meaning: embedders, vectors, the fusion of two rankings."""

from __future__ import annotations
