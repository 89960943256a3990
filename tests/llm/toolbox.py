"""What the tests of the agent's tools share."""

from __future__ import annotations

import memdb
from memdb.layers.blocks.config import BlockConfig

COUNTER = memdb.TokenCounter()
BLOCKS = {
    "task": BlockConfig(size=60, priority=1, description="Current task"),
    "user_prefs": BlockConfig(size=500, priority=5),
}


def said(result):
    """Return the text of a result that went well."""
    assert result.status == "success", result
    assert result.error is None
    assert str(result) == result.content
    return result.content


def failed(result):
    """Return the sentence of one that did not."""
    assert (result.status, result.content) == ("error", "")
    assert str(result) == f"Error: {result.error}"
    return result.error
