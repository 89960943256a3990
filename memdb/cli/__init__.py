"""The `memdb` command. What is heavy is imported inside the commands, so that `memdb --help` answers at once."""

from __future__ import annotations

from memdb.cli.app import main

__all__ = ["main"]
