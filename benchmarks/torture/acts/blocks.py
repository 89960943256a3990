"""Acts on memory blocks: edited and taken back, and a log that gives way line by line to the archive."""

from __future__ import annotations

from typing import Any

from benchmarks.torture.acts.act import ANY, Act, Chance, Refused, need
from benchmarks.torture.model import State

SIZE = 100_000  # tokens: these blocks never give way
LOG = "log"  # of the session "b": this one does
LOG_SIZE = 60
MOST_TEXTS = 150  # of a block; memdb keeps 200


def _name(chance: Chance) -> list[str]:
    return [chance.session(), chance.random.choice(["task", "user", "計画"])]


def _block(state: State, args: list[Any]) -> dict[str, Any]:
    blocks = state["sessions"][args[0]]["blocks"]
    need(args[1] in blocks, "UnknownBlock")
    found: dict[str, Any] = blocks[args[1]]
    return found


def _tell(block: dict[str, Any], text: str, restored: int | None = None) -> Any:
    if text != block["texts"][-1]:
        block["texts"].append(text)
    block["restored"] = restored
    return ANY


def _configure(state: State, args: list[Any]) -> Any:
    session, name, text = args
    state["sessions"][session]["blocks"].setdefault(name, {"texts": [text], "restored": None})


def _update(state: State, args: list[Any]) -> Any:
    return _tell(_block(state, args), args[2])


def _append(state: State, args: list[Any]) -> Any:
    block = _block(state, args)
    return _tell(block, f"{block['texts'][-1]}\n{args[2]}")


def _old(chance: Chance, session: str, name: str) -> str:
    block = chance.state["sessions"][session]["blocks"].get(name)
    return chance.random.choice(block["texts"][-1].split()) if block else "x"


def _replacing(chance: Chance) -> list[str]:
    where = _name(chance)
    return [*where, _old(chance, *where), chance.text(3)]


def _replace(state: State, args: list[Any]) -> Any:
    block, (old, new) = _block(state, args), args[2:]
    need(old in block["texts"][-1], "InvalidInput")
    return _tell(block, block["texts"][-1].replace(old, new))


def _undo(state: State, args: list[Any]) -> Any:
    block = _block(state, args)
    target = (block["restored"] or len(block["texts"])) - 1
    need(target >= 1, "InvalidInput")
    return _tell(block, block["texts"][target - 1], target)


def _remove(state: State, args: list[Any]) -> bool:
    return state["sessions"][args[0]]["blocks"].pop(args[1], None) is not None


def _long(chance: Chance) -> list[str]:
    """The block to remove: one that has had many texts, if there is one."""
    for session, held in chance.state["sessions"].items():
        for name, block in held["blocks"].items():
            if chance.only in (None, session) and len(block["texts"]) > MOST_TEXTS // 2:
                return [session, name]
    return _name(chance)


def _open_log(state: State, args: None) -> None:
    state["log_open"] = True


def _write_log(state: State, line: str) -> Any:
    if not state["log_open"]:
        raise Refused("UnknownBlock")
    state["log"].append(line)
    return ANY


def _configured(at: Any, args: list[Any]) -> Any:
    session, name, text = args
    return at(session).blocks.configure({name: {"size": SIZE, "initial_value": text, "description": "部署"}})


def _log_configured(at: Any, args: None) -> Any:
    return at("b").blocks.configure({LOG: {"size": LOG_SIZE}}, {"eviction_strategy": "archive_only"})


ACTS = [
    Act("blocks.configure", 2, lambda chance: [*_name(chance), chance.text()], _configure, _configured),
    Act(
        "blocks.update", 2, lambda chance: [*_name(chance), chance.text(60)], _update,
        lambda at, args: at(args[0]).blocks.update_memory(*args[1:]),
    ),
    Act(
        "blocks.append", 3, lambda chance: [*_name(chance), chance.text()], _append,
        lambda at, args: at(args[0]).blocks.append_to_memory(*args[1:]),
    ),
    Act("blocks.replace", 2, _replacing, _replace, lambda at, args: at(args[0]).blocks.replace(*args[1:])),
    Act("blocks.undo", 2, _name, _undo, lambda at, args: at(args[0]).blocks.undo(args[1])),
    Act("blocks.remove", 1, _long, _remove, lambda at, args: at(args[0]).blocks.remove_block(args[1])),
    Act("blocks.open_log", 1, lambda chance: None, _open_log, _log_configured),
    Act(
        "blocks.log", 5, lambda chance: chance.text(6), _write_log,
        lambda at, line: at("b").blocks.append_to_memory(LOG, line),
    ),
]  # fmt: skip
