"""Acts on facts and history, and on the archive."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from benchmarks.torture.acts.act import Act, Chance, need
from benchmarks.torture.model import State

PASSAGES = 8


def _wanted_version(chance: Chance) -> int | None:
    present = len(chance.state["facts"])
    return chance.random.choice([None, None, present, present + 1])


def _write(state: State, args: list[Any]) -> bool:
    text, version = args
    facts = state["facts"]
    if version is not None and version != len(facts):
        return False
    if not facts or facts[-1] != text:
        facts.append(text)
    return True


def _append(state: State, text: str) -> int:
    state["history"].append(text)
    return len(state["history"])


def _append_many(state: State, texts: list[str]) -> list[int]:
    need(all(text.strip() for text in texts), "InvalidInput")
    return [_append(state, text) for text in texts]


def _append_chunk(state: State, args: list[Any]) -> int:
    chunk, texts = args
    if chunk in state["chunks"]:
        return 0
    state["chunks"].append(chunk)
    state["history"] += texts
    return len(texts)


def _chunk(at: Any, args: list[Any]) -> Any:
    chunk, texts = args
    told = {"session_id": "b", "first_position": 1, "last_position": 2}
    return at("a").facts.append_chunk(texts, origin="raw", chunk=chunk, **told)


def _entries(chance: Chance) -> list[str]:
    texts = chance.some(chance.text, 4)
    return [*texts, "  "] if chance.random.random() < 0.2 else texts


def passage_text(number: int) -> str:
    """Return the text of one of a few passages."""
    return f"passage{number}p of the archive 部署 {number}"


def _passage(chance: Chance) -> list[Any]:
    return [passage_text(chance.random.randrange(PASSAGES)), chance.random.randint(0, 4) / 4, chance.tags()]


def _insert(state: State, one: list[Any]) -> str:
    content, importance, tags = one
    old = state["archive"].get(content, [0, []])
    state["archive"][content] = [max(old[0], importance), list(dict.fromkeys([*old[1], *tags]))]
    return sha256(content.encode()).hexdigest()


def _insert_many(state: State, ones: list[list[Any]]) -> list[str]:
    return [_insert(state, one) for one in ones]


def _insert_one(at: Any, one: list[Any]) -> Any:
    return at("a").archive.insert(one[0], importance=one[1], tags=one[2])


def _insert_all(at: Any, ones: list[list[Any]]) -> Any:
    return at("a").archive.insert_many([{"content": text, "importance": how, "tags": tags} for text, how, tags in ones])


def _delete(state: State, content: str) -> bool:
    return state["archive"].pop(content, None) is not None


ACTS = [
    Act(
        "facts.write", 4, lambda chance: [chance.text(20), _wanted_version(chance)], _write,
        lambda at, args: at("a").facts.write_long_term(args[0], if_version=args[1]),
    ),
    Act("facts.append", 4, lambda chance: chance.text(), _append, lambda at, text: at("a").facts.append_history(text)),
    Act("facts.append_many", 2, _entries, _append_many, lambda at, texts: at("a").facts.append_entries(texts)),
    Act(
        "facts.append_chunk", 2,
        lambda chance: [f"chunk{chance.random.randrange(30)}", chance.some(chance.text, 3)], _append_chunk, _chunk,
    ),
    Act("archive.insert", 4, _passage, _insert, _insert_one),
    Act("archive.insert_many", 2, lambda chance: chance.some(lambda: _passage(chance), 4), _insert_many, _insert_all),
    Act(
        "archive.delete", 2, lambda chance: passage_text(chance.random.randrange(PASSAGES)), _delete,
        lambda at, content: at("a").archive.delete(sha256(content.encode()).hexdigest()),
    ),
]  # fmt: skip
