"""demo: a memory to look at, made from notes and a recorded conversation that come with memdb."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdb.cli import output
from memdb.cli.arguments import run
from memdb.cli.demo_agent import SESSION, show_agent, work
from memdb.cli.demo_pressure import show_pressure
from memdb.errors import AlreadyExists

if TYPE_CHECKING:
    from memdb.database import Database
    from memdb.layers.knowledge import KnowledgePage
    from memdb.layers.layer import Inside
    from memdb.memory import Memory
    from memdb.retrieval.find import Hit
    from memdb.storage.transaction import Transaction

USER = "ana"
QUESTIONS = (
    "How does Ana take her coffee?",
    "what did v2.10.3 fix in parse_config",
    "为什么先把鸡蛋盛出来",
    "京都の紅葉はいつが見頃？",
    "ต้มยำใส่น้ำมะนาวตอนไหน",
    "चाय में दूध कब डालें?",
)
# Whose answers do not repeat the question: the turns around them do.
OF_THE_TALK = (
    "How long did the repair of the violin take?",
    "what does the gauge of the boiler say",
    "Which view does Ana want for the room in Lisbon?",
)
# What a post-mortem among the notes tells as a story: from, how, to.
CHAIN = (
    ("tide service", "presents", "certificate"),
    ("certificate", "renewed_by", "HTTP-01 challenge"),
    ("HTTP-01 challenge", "needs", "port 80"),
    ("boats", "rely_on", "tide service"),
    ("boats", "keep_data_in", "SQLite"),
)
OF_THE_GRAPH = "What stops when port 80 is closed?"


def demo(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="Where to make it; else in a new folder.", show_default=False)
    ] = None,
) -> None:
    """Make a memory of 24 notes in six languages and four conversations, and ask it ten questions.

    Then an agent stores what it is doing and packs the context of its next call, a talk is consolidated, and a block
    gives to the archive. It needs no network and no model. The file stays, to be looked at.

    Example: memdb demo
    """
    if file is not None and os.path.exists(file):
        raise AlreadyExists(f"{file} is there already and was left alone; give the demo a path of its own")
    if file is None:
        import tempfile

        file = os.path.join(tempfile.mkdtemp(prefix="memdb-demo-"), "ana.db")
    run(_demo(file))


async def _demo(file: str) -> None:
    import memdb
    import memdb.layers.graph
    import memdb.retrieval.find  # before the clock runs

    pages, talks = list(_pages()), _talks()
    messages = sum(map(len, talks.values()))
    began = time.perf_counter()
    async with memdb.open(file) as db:
        await db.memory(USER).pages.add_pages(pages)
        await db.memory(USER).atomic(_relate)
        for session, turns in talks.items():
            await db.memory(USER, session).conversation.add_messages(turns)
        stored = f"{len(pages)} notes of an agent about Ana, {messages} messages of {len(talks)} conversations"
        output.say(f"{stored} and a small graph, stored in {_since(began)}:", f"  {file}", "")
        command = await db.read(_shell_command, file)
        for question in QUESTIONS:
            await _ask(db, question)
        output.say("Of the conversations, where a turn is found by what was said around it:", "")
        for question in OF_THE_TALK:
            await _ask(db, question)
        output.say("Of the graph, where an answer is what leads to what the question names:", "")
        await _ask_the_graph(db)
        output.say(
            "Of what an agent is doing: its state, its summary, a tool's answer, the context of its next call:", ""
        )
        await db.memory(USER, SESSION).atomic(work)
        await show_agent(db, USER)
        output.say("Of memory under pressure: what grows too long is told in short, and stays to be found:", "")
        await show_pressure(db, USER, SESSION)
        before = await _find(db, QUESTIONS[0])
    async with memdb.open(file) as db:
        again = await _find(db, QUESTIONS[0])
        sound = (await db.check()).ok
    same = "the same answer" if again == before else "another answer"
    output.say(
        f"Closed and opened again: {same}, and the file is {'sound' if sound else 'NOT sound'}.",
        "",
        "Now ask it yourself:",
        f"  memdb search {shlex.quote(file)} Sauerteig falten und backen",
        f"  memdb state {shlex.quote(file)} --session {SESSION} --tool-results",
        f"  memdb messages {shlex.quote(file)} --session luthier",
        f"  memdb history {shlex.quote(file)} --versions",
        f"  memdb explain {shlex.quote(file)} why did the boats lose the tide service",
        f'  memdb graph related {shlex.quote(file)} "port 80" --direction in --depth 4 --paths',
        "",
        "The plain sqlite3 shell answers the first question, too:",
        command,
    )


def _pages() -> Iterator[KnowledgePage]:
    """Yield the notes that come with memdb."""
    from importlib.resources import as_file, files

    from memdb.cli.sources import find_sources
    from memdb.layers.knowledge import KnowledgePage

    with as_file(files("memdb.cli") / "notes") as folder:
        for source in find_sources([str(folder)]):
            for row in source.rows():
                yield KnowledgePage(**row.fields)


def _talks() -> dict[str, list[dict[str, Any]]]:
    """Return the conversations that come with memdb, by session."""
    from importlib.resources import files

    from memdb.cli.chats import message_of, session_of

    talks: dict[str, list[dict[str, Any]]] = {}
    for line in (files("memdb.cli") / "talks" / "ana.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        talks.setdefault(session_of(row) or "", []).append(message_of(row))
    return talks


def _relate(m: Memory[Inside]) -> None:
    """Put what hangs on what into the graph: a unit."""
    from memdb.cli.relate import entity_of
    from memdb.layers.entity import GraphRelation

    names = dict.fromkeys(name for source, _, target in CHAIN for name in (source, target))
    m.graph.add_entities(map(entity_of, names))
    m.graph.add_relations(
        [GraphRelation(source_id=source, relation_type=how, target_id=target) for source, how, target in CHAIN]
    )


async def _ask_the_graph(db: Database) -> None:
    """Ask which entities lead to the one that the question names, over however many relations."""
    from rich.text import Text

    from memdb.cli.entities import way
    from memdb.text.extractor import SimpleKeywordExtractor

    graph = db.memory(USER).graph
    began = time.perf_counter()
    named = await graph.find_by_keywords(SimpleKeywordExtractor().extract(OF_THE_GRAPH), limit=1)
    hits = await graph.get_related(named[0].id, depth=4, direction="in", paths=True)
    console = output.console()
    console.print(Text.assemble((OF_THE_GRAPH, "bold cyan"), (f"  {_since(began)}", "dim")))
    for hit in hits:
        told = f"  {way({}, named[0], hit)}"
        console.print(Text.assemble((f"{hit.score:6.2f}  ", "cyan"), (hit.entity.name, "bold"), (told, "dim")))
    output.say("")


async def _find(db: Database, question: str) -> list[Hit]:
    from memdb.retrieval.find import find
    from memdb.scope import Scope

    return await db.read(find, Scope(USER), question, 2)


async def _ask(db: Database, question: str) -> list[Hit]:
    """Ask a question and print what is found: the best hit with its words, the second by its title."""
    from rich.text import Text

    from memdb.cli.search import marked

    began = time.perf_counter()
    hits = await _find(db, question)
    console = output.console()
    console.print(Text.assemble((question, "bold cyan"), (f"  {_since(began)}", "dim")))
    for hit in hits:
        console.print(Text.assemble((f"{hit.score:6.2f}  ", "cyan"), (hit.title, "bold"), (f"  {_place(hit)}", "dim")))
        if hit is hits[0] or hit.session_id:  # a turn has no title that would tell what it is
            console.print(output.indented(marked(hit.snippet), 8))
    output.say("")
    return hits


def _place(hit: Hit) -> str:
    from memdb.cli.search import where

    return where(hit) if hit.session_id else hit.id


def _since(began: float) -> str:
    return f"{1000 * (time.perf_counter() - began):.1f} ms"


def _shell_command(tx: Transaction, file: str) -> str:
    """Return the line for a shell that asks the first question with nothing but SQLite."""
    from memdb.text.query import parse

    token = tx.execute("SELECT token FROM v_scopes WHERE user_id = ? AND layer = '' AND session_id = ''", (USER,))[0][0]
    words = " OR ".join(term.text for term in parse(QUESTIONS[0]))
    sql = (
        "SELECT p.id, p.title FROM record_search JOIN v_knowledge_pages AS p ON p.record_id = record_search.rowid"
        f" WHERE record_search MATCH 'scope : {token} AND ({words})' ORDER BY rank LIMIT 1"
    )
    return f'sqlite3 {shlex.quote(file)} "{sql}"'
