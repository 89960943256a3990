"""Contexts of any memory: never over the budget, legal for a chat API, the same every time, and nothing unaccounted."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memdb import Database, KnowledgePage, MemoryItem, TokenCounter
from memdb.layers.blocks.config import BlockConfig
from memdb.retrieval.context.builder import Context, ContextBuilder
from memdb.retrieval.context.sections import KINDS, LABELS, RETRIEVED_LABEL, SECTIONS
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME, json_values, prose, queries, texts

COUNTER = TokenCounter()
HEADS = [*(kind.label for kind in KINDS), RETRIEVED_LABEL]

labelled = st.sampled_from([f"{label}\n" for label in (*HEADS, *LABELS)] + ["```\n", "## x\n", "\n\n", "~~~~"])
long_texts = st.builds(
    lambda parts, times: "".join(parts) * times, st.lists(prose | labelled, min_size=1, max_size=4), st.integers(1, 30)
)
any_text = texts | long_texts
contents = any_text | st.none() | st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts), max_size=2)
call_ids = st.sampled_from(["a", "b", "c"])
calls = st.lists(
    st.builds(lambda id: {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}, call_ids),
    min_size=1,
    max_size=2,
)
messages = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, contents),
    st.builds(lambda content: {"role": "assistant", "content": content}, contents),
    st.builds(lambda made: {"role": "assistant", "content": None, "tool_calls": made}, calls),
    st.builds(lambda id, text: {"role": "tool", "tool_call_id": id, "content": text}, call_ids, any_text),
    st.builds(lambda content: {"role": "system", "content": content}, texts),
)
plans = st.fixed_dictionaries(
    {
        "state": st.dictionaries(texts, json_values | any_text, max_size=4),
        "working_memory": any_text | st.builds(lambda text: f"# Current Goal\ngo\n\n# Completed\n* {text}", any_text),
        "facts": any_text,
        "blocks": st.dictionaries(st.sampled_from(["persona", "Memory Blocks", "```"]), any_text, max_size=3),
        "archive": st.lists(any_text.filter(str.strip), max_size=3),
        "happened": st.lists(any_text.filter(str.strip), max_size=3),
        "items": st.lists(any_text, max_size=4),
        "pages": st.lists(st.tuples(texts, any_text), max_size=4),
        "before": st.lists(messages, max_size=4),
        "history": st.lists(messages, max_size=12),
        "kept": st.none() | st.integers(0, 6),
        "query": queries | texts,
        "system": st.just("") | texts,
        "append": st.booleans(),
        "sections": st.just(SECTIONS) | st.lists(st.sampled_from(SECTIONS), unique=True),
        "retrieved_tokens": st.sampled_from([1, 30, 200, 2_000]),
        "budgets": st.lists(st.integers(1, 60) | st.integers(1, 1_500), min_size=1, max_size=5),
    }
)


async def fill(db: Database, plan: dict[str, Any]) -> None:
    memory = db.memory("alice", "now")
    await memory.manager.update_state(plan["state"])
    await memory.manager.update_working_memory(plan["working_memory"])
    await memory.facts.write_long_term(plan["facts"])
    await memory.blocks.configure({name: BlockConfig(size=2_000) for name in plan["blocks"]})
    for name, text in plan["blocks"].items():
        await memory.blocks.update_memory(name, text)
    await memory.archive.insert_many(plan["archive"])
    for entry in plan["happened"]:
        await memory.facts.append_history(entry)
    await memory.items.save_many(MemoryItem(id=f"i{n}", content=text) for n, text in enumerate(plan["items"]))
    await memory.pages.add_pages(
        KnowledgePage(id=f"p{n}", title=title, content=text) for n, (title, text) in enumerate(plan["pages"])
    )
    await db.memory("alice", "before").conversation.add_messages(plan["before"])
    await memory.conversation.add_messages(plan["history"])
    if plan["kept"] is not None:
        await memory.conversation.compact(keep_last=plan["kept"])


def check_legal(sent: list[dict[str, Any]]) -> None:
    """Check what a chat API checks: every call is answered at once, every answer has its call."""
    open_calls: list[str] = []
    for message in sent:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert open_calls == []
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    assert open_calls == []


def check_sections(context: Context) -> None:
    """Check that each text stands below its label, and that no line of it reads as another's."""
    texts = [(name, section.text) for name, section in context.sections.items() if section.text]
    if texts:
        assert context.messages[0] == {"role": "system", "content": "\n\n".join(text for _, text in texts)}
        context.messages[0]["content"].encode()
    for name, text in texts:
        if name != "system":
            head = next(head for head in HEADS if text.startswith(f"{head}\n"))
            body = text.removeprefix(f"{head}\n")
            assert body
            assert not any(line.strip().casefold() in map(str.casefold, LABELS) for line in body.splitlines())


def numbers(id: str) -> set[int]:
    first, _, last = id.partition("-")
    return set(range(int(first), int(last or first) + 1))


async def check_history(db: Database, context: Context) -> None:
    """Check that each message after the cursor is in the context or left out, and that the newest are in it."""
    talk = db.memory("alice", "now").conversation
    passed = await talk.last_consolidated()
    after = {message.position for message in (await talk.messages())[passed:]}
    legal = [message.position for message in await talk.get_history()]
    sections = context.sections
    taken = [int(id) for name in ("history", "question") if name in sections for id in sections[name].ids]
    left = [numbers(one.id) for one in context.left_out if one.section in ("history", "question") and one.id]
    assert set(taken).union(*left) == after
    assert len(taken) + sum(map(len, left)) == len(after)
    assert taken == sorted(taken)
    assert set(taken) <= set(legal)


async def example(db: Database, plan: dict[str, Any]) -> None:
    await fill(db, plan)
    memory = db.memory("alice", "now")
    builder = ContextBuilder(memory, COUNTER, sections=plan["sections"], retrieved_tokens=plan["retrieved_tokens"])
    for budget in plan["budgets"]:
        asked = {"max_tokens": budget, "system": plan["system"], "append_query": plan["append"]}
        context = await builder.build(plan["query"], **asked)
        assert context.tokens == COUNTER.count_messages(context.messages) <= budget
        check_legal(context.messages)
        check_sections(context)
        if "history" in plan["sections"]:
            await check_history(db, context)
        assert all(one.tokens is None or one.tokens > 0 for one in context.left_out)
        assert set(context.sections) <= {"system", "question", *plan["sections"]}
        again = ContextBuilder(memory, COUNTER, sections=plan["sections"], retrieved_tokens=plan["retrieved_tokens"])
        assert await again.build(plan["query"], **asked) == context


@settings(SAME_EVERY_TIME, max_examples=120)
@given(plans)
def test_any_context_keeps_to_its_budget(plan: dict[str, Any]) -> None:
    run(example, plan)
