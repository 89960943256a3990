"""Acts on what an agent is doing: state, working summary, checkpoints, tool results."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from benchmarks.torture.acts.act import Act, Chance, need
from benchmarks.torture.model import State
from memdb import AgentCheckpoint

STATUSES = ("in_progress", "completed", "interrupted")


def _session(state: State, args: list[Any]) -> State:
    found: State = state["sessions"][args[0]]
    return found


def _patch(chance: Chance) -> list[Any]:
    values = chance.some(lambda: [f"key {chance.random.randrange(6)}", chance.text(4)], 3)
    return [chance.session(), dict(values) | {"number": chance.number}]


def _update(state: State, args: list[Any]) -> dict[str, Any]:
    held = _session(state, args)
    held["state"] = {**held["state"], **args[1]}
    return dict(held["state"])


def _remove_keys(state: State, args: list[Any]) -> dict[str, Any]:
    held = _session(state, args)
    held["state"] = {key: value for key, value in held["state"].items() if key not in args[1]}
    return dict(held["state"])


def _summarize(state: State, args: list[Any]) -> bool:
    held, (_, text, wanted) = _session(state, args), args
    if wanted is not None and wanted != held["summary"][1]:
        return False
    held["summary"] = [text, held["summary"][1] + 1]
    return True


def _wanted(chance: Chance) -> list[Any]:
    session = chance.session()
    revision = chance.state["sessions"][session]["summary"][1]
    return [session, chance.text(30), chance.random.choice([None, revision, revision + 1])]


def _clear_summary(state: State, args: list[Any]) -> bool:
    held = _session(state, args)
    text, revision = held["summary"]
    if text:
        held["summary"] = ["", revision + 1]
    return bool(text)


def _checkpoint(chance: Chance) -> list[Any]:
    status = chance.random.choice(STATUSES)
    return [chance.session(), chance.file_id(), status, {"step": chance.number, "text": chance.text(200)}]


def _save(state: State, args: list[Any]) -> int:
    _, id, status, payload = args
    saves = _session(state, args)["saves"].setdefault(id, [])
    saves.append([saves[-1][0] + 1 if saves else 1, status, payload])
    return int(saves[-1][0])


def _save_plan(state: State, args: list[Any]) -> int:
    session, id, payload = args
    return _save(state, [session, id, None, payload])


def _delete_saves(state: State, args: list[Any]) -> int:
    return len(_session(state, args)["saves"].pop(args[1], []))


def _prune(state: State, args: list[Any]) -> int:
    saves, gone = _session(state, args)["saves"], 0
    for id, kept in saves.items():
        gone += max(0, len(kept) - args[1])
        saves[id] = kept[-args[1] :]
    return gone


def output(word: str, lines: int) -> str:
    """Return what a tool said: some lines, perhaps several chunks of the file."""
    return f"{word} a line of a tool's output 部署\n" * lines


def _result(chance: Chance) -> list[Any]:
    lines = chance.random.choice([0, 1, 50, 1_500, 3_000])
    return [chance.session(), chance.file_id(), f"q{chance.number}z0q", lines]


def _save_result(state: State, args: list[Any]) -> None:
    _, id, word, lines = args
    text = output(word, lines)
    _session(state, args)["results"][id] = [sha256(text.encode()).hexdigest(), len(text)]


def _spoil(state: State, args: list[Any]) -> None:
    need(False, "InvalidInput")


def _delete_result(state: State, args: list[Any]) -> bool:
    return _session(state, args)["results"].pop(args[1], None) is not None


def _stored(at: Any, args: list[Any]) -> Any:
    session, id, word, lines = args
    return at(session).manager.save_tool_result(id, {"tool": "look", "content": output(word, lines)})


def _saved(at: Any, args: list[Any]) -> Any:
    session, id, status, payload = args
    return at(session).manager.save_checkpoint(AgentCheckpoint(id=id, status=status, payload=payload))


def _keys(chance: Chance) -> list[Any]:
    return [chance.session(), chance.some(lambda: f"key {chance.random.randrange(6)}", 3)]


def _spoilt(at: Any, args: list[Any]) -> Any:
    return at(args[0]).manager.save_plan("a/../b", {})


def _place(chance: Chance) -> list[Any]:
    return [chance.session(), chance.file_id()]


ACTS = [
    Act("state.update", 4, _patch, _update, lambda at, args: at(args[0]).manager.update_state(args[1])),
    Act("state.remove", 1, _keys, _remove_keys, lambda at, args: at(args[0]).manager.remove_state_keys(args[1])),
    Act(
        "summary.write", 3, _wanted, _summarize,
        lambda at, args: at(args[0]).manager.update_working_memory(args[1], if_revision=args[2]),
    ),
    Act(
        "summary.clear", 1, lambda chance: [chance.session()], _clear_summary,
        lambda at, args: at(args[0]).manager.clear_working_memory(),
    ),
    Act("checkpoints.save", 4, _checkpoint, _save, _saved),
    Act(
        "checkpoints.plan", 1, lambda chance: [*_place(chance), {"plan": chance.text()}], _save_plan,
        lambda at, args: at(args[0]).manager.save_plan(*args[1:]),
    ),
    Act(
        "checkpoints.delete", 1, _place, _delete_saves,
        lambda at, args: at(args[0]).manager.delete_checkpoint(args[1]),
    ),
    Act(
        "checkpoints.prune", 2, lambda chance: [chance.session(), chance.random.randint(1, 4)], _prune,
        lambda at, args: at(args[0]).manager.prune_checkpoints(args[1]),
    ),
    Act("checkpoints.spoilt", 1, lambda chance: [chance.session()], _spoil, _spoilt),
    Act("results.save", 3, _result, _save_result, _stored),
    Act("results.delete", 1, _place, _delete_result, lambda at, args: at(args[0]).manager.delete_tool_result(args[1])),
]  # fmt: skip
