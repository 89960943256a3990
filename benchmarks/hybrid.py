"""The hybrid part: what BM25, the vectors and both together find, through `memory.hybrid`.

Every document is a page of its group's user; turns of a conversation are messages, too, in a file of their own. The
parts are the hybrid's own ends: words alone (bm25_weight 1) and vectors alone (0). Times are those of the awaited call
with a vector of the query that is kept already.
"""

from __future__ import annotations

import asyncio
from typing import Any

from rich.console import Console

import memdb
from benchmarks.datasets import Dataset, load
from benchmarks.embedders import KeptEmbedder, encoder
from benchmarks.quality import Ids, System, chosen, fill_conversations, fill_pages, measure_systems
from benchmarks.settings import Settings
from memdb import Database

EMBEDDERS = ("minilm",)  # unless others are asked for
WEIGHTS = {"vectors": 0.0, "hybrid": 0.5}
LOOK_S = 0.2
PATIENCE_S = 600  # without a record more that is embedded


async def run(settings: Settings, console: Console) -> list[dict[str, Any]]:
    """Measure every set of the folders given, or the one asked for, with every embedder asked for."""
    folders = chosen(settings)
    embedders = {name: encoder(name) for name in settings.embedders or EMBEDDERS}
    about = {
        name: {"model": one.model, "dimensions": one.dimensions, "package": one.package}
        for name, one in embedders.items()
    }
    kept = {name: KeptEmbedder(one, settings.vectors or settings.folder) for name, one in embedders.items()}
    sets: list[dict[str, Any]] = []
    for folder in folders:
        dataset = load(folder)
        for form in ("page", "message") if dataset.talks else ("page",):
            console.print(f"[dim]{dataset.name} as {form}s ...[/dim]")
            sets.append({**await _measure_set(dataset, form, kept, settings, console), "embedders": about})
    return sets


async def _measure_set(
    dataset: Dataset, layer: str, embedders: dict[str, KeptEmbedder], settings: Settings, console: Console
) -> dict[str, Any]:
    path = settings.folder / f"{dataset.name}-{layer}-hybrid.db"
    async with memdb.open(path) as db:
        ids = await fill_pages(db, dataset) if layer == "page" else await fill_conversations(db, dataset)
        figures = await measure_systems(dataset, {"BM25": _searching(db, layer, 1.0, ids)}, settings)
    for name, embedder in embedders.items():
        async with memdb.open(path, embedder=embedder) as db:
            await _embed_all(db, dataset, layer, console)
            systems = {f"{part}, {name}": _searching(db, layer, weight, ids) for part, weight in WEIGHTS.items()}
            figures |= await measure_systems(dataset, systems, settings)
    return {
        "name": f"{dataset.name}, {layer}s",
        "documents": dataset.size,
        "queries": len(dataset.queries[: settings.queries]),
        "systems": figures,
        "recall@10 above the better part": {name: _gain(figures, name) for name in embedders},
    }


def _searching(db: Database, layer: str, weight: float, ids: Ids) -> System:
    async def search(user: str, query: str, limit: int) -> list[str]:
        hits = await db.memory(user).hybrid.search(query, layer=layer, k=limit, bm25_weight=weight)
        return [ids[user, hit.session_id, hit.id] for hit in hits]

    return search


def _gain(figures: dict[str, dict[str, float]], name: str) -> float:
    better = max(figures[part]["recall@10"] for part in ("BM25", f"vectors, {name}"))
    return round(figures[f"hybrid, {name}"]["recall@10"] - better, 4)


async def _embed_all(db: Database, dataset: Dataset, layer: str, console: Console) -> None:
    """Wait until every document has its vectors: a user's first search has theirs embedded."""
    for user in dict.fromkeys(document.user for document in dataset.documents):
        await db.memory(user).hybrid.search("anything", layer=layer, k=1, bm25_weight=0.5)
    async with db.embeddings:
        waited, before = 0.0, -1
        while (now := await db.embeddings.progress()).waiting:
            waited = waited + LOOK_S if now.embedded == before else 0.0
            if waited > PATIENCE_S:
                raise SystemExit(f"{now.waiting} documents of {dataset.name} still wait for their vectors")
            before = now.embedded
            await asyncio.sleep(LOOK_S)
