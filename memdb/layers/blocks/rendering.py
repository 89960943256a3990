"""A session's blocks as a model reads them, in the form of the Asterix program's prompt."""

from __future__ import annotations

import re

from memdb.layers.blocks.stored import Block, all_blocks
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.text.answer import one_line

HEADING = "# Memory Blocks"
INTRODUCTION = "What you keep in mind, in named blocks that you can change with your memory tools."
EMPTY = "(empty)"

_BACKTICKS = re.compile("`+")


def blocks_text(tx: Transaction, scope: Scope) -> str:
    """Return all blocks of a session for a prompt; "" when it has none.

    A heading "# Memory Blocks", a line that says what follows, and for each block, in the order in which they were
    configured: its name as a heading, its description in italics where it has one, its content in a fence or "(empty)",
    and a blank line. What a block says cannot end its fence, and a name or description stays on its line.
    """
    blocks = all_blocks(tx, scope)
    if not blocks:
        return ""
    return "\n".join([HEADING, "", INTRODUCTION, "", *(line for block in blocks for line in _lines(block))])


def fenced(content: str) -> str:
    """Return a text between two fences that are longer than any run of backticks in it."""
    longest = max(map(len, _BACKTICKS.findall(content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{content}{'' if content.endswith(chr(10)) else chr(10)}{fence}"


def _lines(block: Block) -> list[str]:
    description = one_line(block.config.description)
    return [
        f"## {one_line(block.name)}",
        *([f"*{description}*"] if description else []),
        fenced(block.content) if block.content else EMPTY,
        "",
    ]
