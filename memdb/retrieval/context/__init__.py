"""What an agent needs at its next call, packed into a budget of tokens."""

from __future__ import annotations
