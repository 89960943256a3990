"""Every argument of every public method, function and model gets every value that no caller means to give.

What comes of it is an answer, or an error of memdb's in one line that says what was wrong; and the memory still works.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memdb
from memdb import MemoryItem
from memdb.testing import HashingEmbedder
from tests.hostile.every_call import FUNCTIONS, MODELS, OBJECTS, good, methods, parameters
from tests.hostile.hostile_values import VALUES, complaint

PATIENCE = 60  # seconds, until a call that hangs is called a failure
WIRING = ("db", "memory", "notes", "engine", "blocks")  # parts of memdb: another part in their place is no input
CODE = ("class", "function")  # as a unit, they are run, and what they raise is theirs

Call = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore")  # of numpy, and of coroutines whose arguments were refused


def forms(parameter: inspect.Parameter) -> Iterator[tuple[str, Call]]:
    """Yield every hostile value for a parameter, with its name; of lists and dicts also as what is in them."""
    holds = any(kind in str(parameter.annotation) for kind in ("Iterable", "Sequence", "Mapping", "dict", "list"))
    for name, make in VALUES.items():
        if parameter.name == "unit" and name in CODE:
            continue
        yield name, make
        if holds:
            yield f"[{name}]", lambda make=make: [make()]
            yield f"{{a: {name}}}", lambda make=make: {"a": make()}


async def fault(call: Call, given: dict[str, Any], positional: str = "") -> str | None:
    """Return what is wrong with what a call comes to."""
    try:
        first = (given.pop(positional),) if positional else ()
        answer = call(*first, **given)
        if inspect.isawaitable(answer):
            answer = await asyncio.wait_for(answer, PATIENCE)
        if isinstance(answer, memdb.Database):
            await answer.close()
    except BaseException as error:
        return complaint(error)
    return None


async def faults(full: str, call: Call, wiring: dict[str, Any], folder: Path) -> list[str]:
    """Call with each hostile value for each parameter, the others good; return what is wrong."""
    found, all_of_them = [], parameters(call)
    for one in all_of_them:
        if one.name in wiring:
            continue
        needed = [other for other in all_of_them if other.default is other.empty and other is not one]
        for name, make in forms(one):
            given = {
                other.name: wiring[other.name] if other.name in wiring else good(f"{full}.{other.name}", folder)
                for other in needed
            }
            only = one.name if one.kind is one.POSITIONAL_ONLY else ""
            if wrong := await fault(call, given | {one.name: make()}, only):
                found.append(f"{full}({one.name}={name}): {wrong}")
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # a value may be the name of a file
    return tmp_path


async def works(db: memdb.Database) -> None:
    items = db.memory("after").items
    await items.save(MemoryItem(id="a", content="it still works"))
    assert [hit.item.id for hit in await items.search("works")] == ["a"]
    assert (await db.check()).problems == []


@pytest.mark.parametrize("name", OBJECTS)
async def test_every_argument_of_every_method(folder: Path, name: str) -> None:
    async with memdb.open(":memory:", embedder=HashingEmbedder(16)) as db:
        memory = db.memory("a")
        await memory.blocks.configure({"a": {"size": 50}})
        there = OBJECTS[name][1](db, memory)
        found = []
        for full in methods():
            kind, method = full.split(".")
            if kind == name:
                found += await faults(full, getattr(there, method), {}, folder)
        assert found == []
        await works(db)


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_every_argument_of_every_function(folder: Path, name: str) -> None:
    async with memdb.open(":memory:") as db:
        memory = db.memory("a")
        parts: dict[str, Any] = {
            "db": db, "memory": memory, "notes": memory.notes, "engine": memory.engine, "blocks": memory.blocks,
        }  # fmt: skip
        function = getattr(memdb, name)
        needs = {one.name for one in parameters(function) if one.default is one.empty}
        wiring = {part: value for part, value in parts.items() if part in needs}
        assert await faults(name, function, wiring, folder) == []
        await works(db)


@pytest.mark.parametrize("name", MODELS)
async def test_every_field_of_every_model(name: str) -> None:
    kind = getattr(memdb, name)
    found = []
    for field in kind.model_fields:
        for value, make in VALUES.items():
            for form, made in ((value, make), (f"[{value}]", lambda make=make: [make()])):
                if wrong := await fault(kind, {**MODELS[name], field: made()}):
                    found.append(f"{name}({field}={form}): {wrong}")
    assert found == []


def test_no_model_and_no_function_is_left_out() -> None:
    public = {name: getattr(memdb, name) for name in memdb.__all__}
    kinds = {name for name, one in public.items() if isinstance(one, type)}
    models = {name for name in kinds if hasattr(public[name], "model_fields")}
    # Settings is read from files and the environment: tests/test_settings.py. NoEviction has no fields.
    assert models - {"Settings", "NoEviction"} == set(MODELS)
    functions = {name for name, one in public.items() if inspect.isfunction(one)}
    assert functions <= set(FUNCTIONS)
    assert all(hasattr(memdb, name) for name in FUNCTIONS)


def test_every_method_has_what_it_takes(tmp_path: Path) -> None:
    for full in methods():
        name, method = full.split(".")
        for one in parameters(getattr(OBJECTS[name][0], method)):
            if one.default is one.empty:
                good(f"{full}.{one.name}", tmp_path)
