"""demo: what an agent is doing in a session, and what its next call would be sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memdb.cli import output

if TYPE_CHECKING:
    from memdb.database import Database
    from memdb.layers.layer import Inside
    from memdb.memory import Memory

SESSION = "boiler"
FAULT = "F28"
QUESTION = "Why does the boiler show F28?"
BUDGET = 400  # tokens
SUMMARY = """\
# Current Goal
Get Ana's boiler going again before the weekend.

# Completed
* read its log

# Open Issues
* the pressure is 0.6 bar, too low to ignite"""


def work(m: Memory[Inside]) -> None:
    """Do what an agent does in a turn: a unit, so all of it is stored or nothing."""
    from memdb.layers.runtime.checkpoints import AgentCheckpoint

    m.manager.update_state({"current_task": "find the fault of the boiler", "current_step": 2})
    m.manager.update_working_memory(SUMMARY)
    m.manager.save_checkpoint(AgentCheckpoint(id="boiler-1", status="interrupted", payload={"read": ["log"]}))


async def show_agent(db: Database, user: str) -> None:
    """Store a tool's large answer, look into it, and show the messages of the next call."""
    from rich.text import Text

    from memdb.retrieval.context.builder import ContextBuilder
    from memdb.text.tokens import TokenCounter

    memory, console = db.memory(user, SESSION), output.console()
    text = "\n".join(_log())
    began = time.perf_counter()
    reference = await memory.manager.externalize("read_log", text)
    assert not isinstance(reference, str)
    found = await memory.manager.search_tool_result(reference.result_id, FAULT)
    head = f"A tool returned {output.size(reference.size)}; the model is given {len(reference.to_json()):,} characters"
    console.print(Text.assemble((head, "bold cyan"), (f"  stored and searched for {FAULT} in {_since(began)}", "dim")))
    for match in found:
        console.print(output.indented(Text(f"line {match.line:,}: {match.text}"), 8))
    output.say("")

    counter = TokenCounter()
    counter.count("")  # reads its table
    began = time.perf_counter()
    context = await ContextBuilder(memory, counter).build(QUESTION, max_tokens=BUDGET, append_query=True)
    head = f"{QUESTION}  What the model is sent, in {BUDGET} tokens:"
    console.print(Text.assemble((head, "bold cyan"), (f"  {context.tokens} tokens in {_since(began)}", "dim")))
    for message in context.messages:
        console.print(Text.assemble((f"{message['role']:>9}  ", "cyan"), output.one_line(message["content"])[:300]))
    for left in context.left_out:
        console.print(Text(f"  left out  {left.section} {left.id}: {left.reason}", style="dim"))
    output.say("")


def _log() -> Iterator[str]:
    """Yield a month of a boiler's readings, a line every minute."""
    for minute in range(30 * 24 * 60):
        day, rest = divmod(minute, 24 * 60)
        bar = 1.5 - 0.9 * minute / (30 * 24 * 60)
        yield f"2026-02-{1 + day:02} {rest // 60:02}:{rest % 60:02} flow {40 + rest % 7} C, {bar:.2f} bar, ok"
    yield f"2026-03-02 06:10 {FAULT}: no ignition after three attempts, 0.60 bar"


def _since(began: float) -> str:
    return f"{1000 * (time.perf_counter() - began):.1f} ms"
