"""demo: memory under pressure: a talk becomes history and facts, and a block that is full gives to the archive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memdb.cli import output

if TYPE_CHECKING:
    from rich.text import Text

    from memdb.database import Database
    from memdb.layers.layer import Live
    from memdb.memory import Memory

TALK = "lisbon"
KNOWN = "* Ana and Teo live in one flat.\n* They want to see Lisbon in May."
# What a model would answer: the demo asks none.
ENTRY = (
    "[2026-03-08 20:28] Ana and Teo chose the week of May 25 for Lisbon, after his exam. She flies; he goes by train, "
    "eleven hours by way of Badajoz and Entroncamento."
)
FACTS = """\
* Ana and Teo live in one flat.
* They are in Lisbon in the week of 2026-05-25; she flies, he goes by train.
* Ana wants a view of the river; one desk is enough."""
BLOCK, BLOCK_TOKENS = "repairs", 48
REPAIRS = (
    "2026-02-03: a pipe fitter closed the leak below the kitchen sink with a seal of PTFE.",
    "2026-02-17: the boiler was filled up to 1.5 bar and ignites again.",
    "2026-03-21: the violin came back from the luthier, who had glued an open seam.",
)
QUESTION = "Who closed the leak in the kitchen?"


async def show_pressure(db: Database, user: str, session: str) -> None:
    """Consolidate a talk with a script in a model's place, then overfill a block and find what it gave away."""
    await _consolidate(db.memory(user, TALK))
    await _overfill(db.memory(user, session))


async def _consolidate(memory: Memory[Live]) -> None:
    from rich.text import Text

    from memdb.llm.consolidation.consolidator import MemoryConsolidator
    from memdb.testing import ScriptedModel
    from memdb.text.reply import ChatReply

    await memory.facts.write_long_term(KNOWN)
    arguments = {"history_entry": ENTRY, "memory_update": FACTS}
    call = {"id": "1", "type": "function", "function": {"name": "save_memory", "arguments": arguments}}
    keeper = MemoryConsolidator(memory, ScriptedModel([ChatReply(None, [call])]))
    began = time.perf_counter()
    await keeper.archive_messages()
    took = _since(began)
    count = await memory.conversation.last_consolidated()
    (entry,), (now, before) = await memory.facts.history(), await memory.facts.versions()
    _head(f"The talk about Lisbon is over: its {count} messages become an entry and facts", f"{took}, a script answers")
    _line("history", Text(f"{entry.number}  {entry.content}"))
    _line(
        "facts", Text(f"version {now.number} by {now.author}, in place of version {before.number} by {before.author}:")
    )
    for fact in now.content.splitlines():
        _line("", Text(fact))
    output.say("")


async def _overfill(memory: Memory[Live]) -> None:
    from rich.text import Text

    from memdb.cli.search import HASH_CHARS

    await memory.blocks.configure({BLOCK: {"size": BLOCK_TOKENS, "description": "What was repaired"}})
    began = time.perf_counter()
    changes = [await memory.blocks.append_to_memory(BLOCK, line) for line in REPAIRS]
    change = next(one for one in changes if one.evicted)
    took = _since(began)
    _head(f"A block of {BLOCK_TOKENS} tokens takes {len(REPAIRS)} lines and keeps the newest", took)
    for line in (await memory.blocks.get_memory(BLOCK))[BLOCK].splitlines():
        _line(BLOCK, Text(line))
    _line("archive", Text(f"{change.archived[0][:HASH_CHARS]}  holds the block as it was before it was cut"))
    output.say("")
    began = time.perf_counter()
    (hit, *_) = await memory.archive.search(QUESTION, 1)
    _head(QUESTION, _since(began))
    first = hit.passage.content.splitlines()[0]
    output.console().print(Text.assemble((f"{hit.score:6.2f}  ", "cyan"), output.printable(first)))
    output.say("")


def _head(what: str, aside: str) -> None:
    from rich.text import Text

    output.console().print(Text.assemble((what, "bold cyan"), (f"  {aside}", "dim")))


def _line(name: str, text: Text) -> None:
    from rich.text import Text

    output.console().print(Text.assemble((f"{name:>9}  ", "cyan"), text))


def _since(began: float) -> str:
    return f"{1000 * (time.perf_counter() - began):.1f} ms"
