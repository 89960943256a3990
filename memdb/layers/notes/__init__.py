"""Pages as notes: what they are called, of which text they are indexed; over a transaction."""

from __future__ import annotations
