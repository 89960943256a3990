"""Size: a file beside the texts in it, and the memory of a process that searches a file of 1 GB.

Where other subjects tell microseconds this one tells bytes by byte of text, and MB.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import memdb
from benchmarks.figures import Comparison, Times
from benchmarks.raw import RawFile
from benchmarks.settings import Settings
from benchmarks.texts import sentences
from benchmarks.writes import NOW
from memdb import KnowledgePage, MemoryItem

DOCUMENT_BYTES = 1_000
CALLERS = 64
PER_CALL = 5_000
GIGABYTE = 1_000_000_000
MOST_MB = 100.0  # of memory
QUERIES = 60
# What a process that searches must not load: tables of tokens, migrations, clients of models, the command's parts.
# numpy it may: where that is installed, a process that searches again and again keeps postings in it.
HEAVY = ("alembic", "anthropic", "openai", "regex", "rich", "tiktoken", "typer", "watchfiles", "yaml")

# Linux carries the greatest memory of the process that started a program over to it (ru_maxrss), so VmHWM is asked.
_PEAK = """
import json, resource, sys
def told(found):
    try:
        with open("/proc/self/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"peak": peak, "found": found, "modules": sorted(sys.modules)}))
"""
_OURS = f"""{_PEAK}
import asyncio, memdb
async def main():
    async with memdb.open(sys.argv[1]) as db:
        pages = db.memory("alice").pages
        answers = await asyncio.gather(*(pages.search(query, limit=10) for query in json.loads(sys.argv[2])))
    told(sum(map(len, answers)))
asyncio.run(main())
"""
_THEIRS = f"""{_PEAK}
import sqlite3
connection = sqlite3.connect(sys.argv[1])
statement = '''
SELECT record.key, record.title, record.content FROM record_search JOIN record ON record.id = record_search.rowid
 WHERE record_search MATCH ? ORDER BY record_search.rank LIMIT 10
'''
words = [" OR ".join(query.split()) for query in json.loads(sys.argv[2])]
told(sum(len(connection.execute(statement, (query,)).fetchall()) for query in words))
"""


async def run(settings: Settings) -> list[Comparison]:
    """Compare the size of a file with that of its texts, and the memory of searching a large one with 100 MB."""
    return [await _file(settings), await _memory(settings)]


def documents(count: int, *, seed: int) -> list[str]:
    """Return texts of about 1 kB, of several sentences."""
    drawn = iter(sentences(count * 9, seed=seed))
    return [_document(drawn) for _ in range(count)]


def _document(drawn: Iterator[str]) -> str:
    text = next(drawn)
    while len(text) < DOCUMENT_BYTES - 75:  # half a sentence
        text += f" {next(drawn)}"
    return text


async def _file(settings: Settings) -> Comparison:
    texts = documents(settings.size(20_000, 300), seed=21)
    result = Comparison(
        f"bytes of a file, {len(texts):,} items of 1 kB",
        f"the file after memory.items.save of {len(texts):,} documents by {CALLERS} callers, closed",
        "the bytes of the documents",
        target=2.2,
        unit="bytes",
    )
    path, size = settings.folder / "size.db", sum(len(text.encode()) for text in texts)
    async with memdb.open(path) as db:
        items, left = db.memory("alice").items, enumerate(texts)

        async def caller() -> None:
            for number, text in left:
                await items.save(MemoryItem(id=f"memory-{number:08}", content=text))

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    result.round(Times([_bytes(path) / size]), Times([1.0]))
    others = {"raw sqlite3 with FTS5": _raw(settings.folder, texts)}
    if find_spec("tantivy") is not None:
        others["tantivy, texts stored"] = _tantivy(settings.folder, texts)
    told = {name: round(held / size, 3) for name, held in others.items()}
    result.notes = {"of_a_byte_of_text": {**told, "memdb's parts": _parts(path, size)}}
    result.detail = ", ".join(f"{name} {share:.2f}" for name, share in told.items())
    return result


def _raw(folder: Path, texts: list[str]) -> int:
    path = folder / "size-raw.db"
    with closing(RawFile(path)) as raw:
        rows = [("alice", "item", "", f"memory-{at:08}", text, "{}", NOW, NOW) for at, text in enumerate(texts)]
        raw.in_transactions(rows, CALLERS)
    return _bytes(path)


def _tantivy(folder: Path, texts: list[str]) -> int:
    import tantivy

    home = folder / "size-tantivy"
    home.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw")
    builder.add_text_field("content", stored=True, tokenizer_name="en_stem")
    index = tantivy.Index(builder.build(), path=str(home))
    writer = index.writer()
    for number, text in enumerate(texts):
        writer.add_document(tantivy.Document(key=f"memory-{number:08}", content=text))
    writer.commit()
    writer.wait_merging_threads()
    return sum(part.stat().st_size for part in home.iterdir())


def _bytes(path: Path) -> int:
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))


def _parts(path: Path, size: int) -> dict[str, float] | str:
    """Return what each table and index takes of a file by byte of text: the ten largest."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute(
                "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 10"
            ).fetchall()
        except sqlite3.OperationalError:
            return "this SQLite has no dbstat"
    return {name: round(taken / size, 3) for name, taken in rows}


async def _memory(settings: Settings) -> Comparison:
    path = settings.folder / "large.db"
    count = await _fill(path, settings)
    result = Comparison(
        f"MB of a process that searches {path.stat().st_size / GIGABYTE:.2f} GB",
        f"the greatest memory of a process: import memdb, open, {QUERIES} searches at once over {count:,} pages",
        f"{MOST_MB:.0f} MB",
        target=1.0,
        unit="MB",
    )
    drawn, words = random.Random(3), sorted({word for text in sentences(300, seed=4) for word in text.split()})
    queries = json.dumps([" ".join(drawn.sample(words, 5)) for _ in range(QUERIES)]).replace(".", "")
    plain = Times()
    for _ in range(settings.size(5, 1)):
        ours, theirs = _process(_OURS, path, queries), _process(_THEIRS, path, queries)
        result.round(Times([ours["peak"] / 1e6]), Times([MOST_MB]))
        plain.values.append(theirs["peak"] / 1e6)
    loaded = sorted(set(HEAVY) & set(ours["modules"]))
    result.notes = {
        "answers": ours["found"],
        "heavy_modules_loaded": loaded,
        "numpy_loaded": "numpy" in ours["modules"],
        "plain_sqlite3_mb": plain.figures(),
        "modules": len(ours["modules"]),
    }
    result.detail = (
        f"sqlite3 alone with the plain statement {plain.median:.0f} MB;"
        f" loaded of {', '.join(HEAVY)}: {', '.join(loaded) or 'none'}"
    )
    return result


async def _fill(path: Path, settings: Settings) -> int:
    """Fill a file up to its size with pages of 1 kB, and return how many they are."""
    most, count = settings.size(GIGABYTE, 2_000_000), 0
    async with memdb.open(path) as db:
        pages = db.memory("alice").pages
        while _bytes(path) < most:
            texts = documents(settings.size(PER_CALL, 200), seed=count + 1)
            await pages.add_pages(
                KnowledgePage(id=f"page-{count + number:08}", title=text[:40], content=text)
                for number, text in enumerate(texts)
            )
            count += len(texts)
    return count


def _process(script: str, path: Path, queries: str) -> dict[str, Any]:
    home = str(Path(memdb.__file__).parents[1])
    search = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), queries],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": search},
    )  # fmt: skip
    return json.loads(done.stdout)  # type: ignore[no-any-return]
