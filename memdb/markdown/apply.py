"""What a sync writes: the difference between what was seen of a folder and what is known of it. A unit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memdb.layers import references
from memdb.layers.knowledge import LAYER, KnowledgePage, KnowledgeStore
from memdb.layers.layer import Inside
from memdb.layers.record import Place
from memdb.layers.sources import Source, free_paths, of_folder, put_sources, remove_many, rename, taken
from memdb.markdown.links import Link
from memdb.markdown.note import PAGE, Note
from memdb.markdown.report import Skipped, SyncReport
from memdb.markdown.resolve import Resolver, Target
from memdb.scope import Scope
from memdb.storage.transaction import Transaction

if TYPE_CHECKING:
    from memdb.markdown.sync import Seen


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a file.

    Args:
        hash: SHA-256 of its bytes.
        category: what the sync was told.
        size, modified_ns, changed_ns: what the file system says.
        note: what it says; None when that was known already.
    """

    hash: str
    category: str
    size: int
    modified_ns: int
    changed_ns: int
    note: Note | None = None

    def is_like(self, source: Source) -> bool:
        """Whether all of this is what was stored."""
        mine = (self.hash, self.category, self.size, self.modified_ns, self.changed_ns)
        return mine == (source.hash, source.category, source.size, source.modified_ns, source.changed_ns)


@dataclass(slots=True)
class _Plan:
    """What will be done: the notes to store by path, and what happens to the pages of the folder."""

    store: dict[str, Note]
    touched: list[str]
    renamed: dict[str, Source]  # path now -> what it was
    removed: list[Source]


def apply(tx: Transaction, user_id: str, folder: str, seen: Seen) -> SyncReport | None:
    """Bring a user's pages in step with what was seen of a folder; None when it must be read again."""
    place = Place.of(LAYER, Scope(user_id))
    sources = of_folder(tx, user_id, folder)
    report = SyncReport(skipped=list(seen.skipped))
    # Another sync has stored or removed this file meanwhile, so that what was seen says too little of it.
    if any(
        now.note is None and (path not in sources or sources[path].hash != now.hash) for path, now in seen.known.items()
    ):
        return None
    plan = _plan(seen, sources)
    _refuse_taken_ids(tx, place, plan, sources, report)
    _move(tx, place, folder, plan, report)
    targets = _targets(plan, sources)
    resolver = Resolver(targets.values())
    _store(tx, place, plan, sources, resolver, report)
    _keep(tx, place, folder, seen, plan, sources)
    _resolve_again(tx, place, plan, sources, targets, resolver)
    report.unchanged = len(seen.known) - len(plan.store) - len(report.skipped) + len(seen.skipped)
    report.skipped.sort()
    return report


def _plan(seen: Seen, sources: dict[str, Source]) -> _Plan:
    """Decide by path and hash: a note that is gone and a new one that says the same, or has its id, are one renamed."""
    plan = _Plan({}, [], {}, [])
    for path, now in seen.known.items():
        source = sources.get(path)
        if source is None or source.hash != now.hash or source.category != now.category:
            if now.note is not None:
                plan.store[path] = now.note
        elif not now.is_like(source):
            plan.touched.append(path)
    gone = {path: source for path, source in sources.items() if path not in seen.known and path not in seen.staying}
    by_id = {source.page_id: path for path, source in gone.items()}
    by_hash: dict[str, list[str]] = {}
    for path in sorted(gone, reverse=True):
        by_hash.setdefault(gone[path].hash, []).append(path)
    for path in sorted(path for path in plan.store if path not in sources):
        was = by_id.get(plan.store[path].page.id)
        if was is None or was not in gone:
            alike = [old for old in by_hash.get(seen.known[path].hash, []) if old in gone]
            was = alike[-1] if alike else None
        if was is not None:
            plan.renamed[path] = gone.pop(was)
    plan.removed = [gone[path] for path in sorted(gone)]
    return plan


def _refuse_taken_ids(
    tx: Transaction, place: Place, plan: _Plan, sources: dict[str, Source], report: SyncReport
) -> None:
    """Leave out notes whose id is another note's, or that of a page that did not come from this folder."""
    leaving = {source.page_id for source in (*plan.removed, *plan.renamed.values())}
    leaving |= {sources[path].page_id for path in plan.store if path in sources}
    owner = {source.page_id: path for path, source in sources.items() if source.page_id not in leaving}
    elsewhere = taken(tx, place, {note.page.id for note in plan.store.values()} - leaving)
    # Who has an id keeps it.
    for path in sorted(plan.store, key=lambda path: (not _keeps_id(plan, sources, path), path)):
        id = plan.store[path].page.id
        if id in owner:
            reason = f"the id {id!r} is that of {owner[id]}; give one of the two another id in its front matter"
        elif id in elsewhere:
            reason = f"the id {id!r} is that of a page from elsewhere; give the note another id in its front matter"
        else:
            owner[id] = path
            continue
        report.skipped.append(Skipped(path, reason))
        del plan.store[path]
        if path in plan.renamed:
            plan.removed.append(plan.renamed.pop(path))


def _keeps_id(plan: _Plan, sources: dict[str, Source], path: str) -> bool:
    source = sources.get(path) or plan.renamed.get(path)
    return source is not None and source.page_id == plan.store[path].page.id


def _move(tx: Transaction, place: Place, folder: str, plan: _Plan, report: SyncReport) -> None:
    """Remove pages whose files are gone, and free the paths and give the keys that renamed ones have now."""
    report.removed = [source.page_id for source in plan.removed]
    remove_many(tx, place, report.removed)
    free_paths(tx, place, folder, [source.path for source in plan.renamed.values()])
    for path, source in sorted(plan.renamed.items()):
        report.renamed.append((source.page_id, plan.store[path].page.id))


def _targets(plan: _Plan, sources: dict[str, Source]) -> dict[str, Target]:
    """Return the notes of the folder as they will be, by path."""
    gone = {source.path for source in (*plan.removed, *plan.renamed.values())}
    targets = {path: Target(path, it.page_id, it.title) for path, it in sources.items() if path not in gone}
    return targets | {path: Target(path, note.page.id, note.page.title) for path, note in plan.store.items()}


def _store(
    tx: Transaction, place: Place, plan: _Plan, sources: dict[str, Source], resolver: Resolver, report: SyncReport
) -> None:
    """Store the pages of new, changed and renamed notes; the record of a changed id keeps what belongs to it."""
    moves = {path: was.page_id for path, was in plan.renamed.items()}
    moves |= {path: sources[path].page_id for path in plan.store if path in sources}
    moves = {path: old for path, old in moves.items() if old != plan.store[path].page.id}
    for path, old in moves.items():  # aside first: an id may be free only once another has moved
        rename(tx, place, old, _aside(path))
    for path in moves:
        rename(tx, place, _aside(path), plan.store[path].page.id)
    pages = [_with_references(note, path, resolver) for path, note in plan.store.items()]
    store: KnowledgeStore[Inside] = KnowledgeStore(Scope(place.user_id), tx)
    store.add_pages(pages, replace=True)
    for path, note in plan.store.items():
        if path in sources:
            report.changed.append(note.page.id)
        elif path not in plan.renamed:
            report.added.append(note.page.id)


def _aside(path: str) -> str:
    return f"\x01{path}"  # no page of a note has such an id: its path is printable


def _with_references(note: Note, path: str, resolver: Resolver) -> KnowledgePage:
    return note.page.model_copy(update={"references": _resolved(note.links, path, note.page.id, resolver)})


def _resolved(links: tuple[Link, ...], path: str, own: str, resolver: Resolver) -> list[str]:
    """Return the pages that links lead to, each once, in order; a page does not refer to itself by a link."""
    found: dict[str, None] = {}
    for link in links:
        id = link.target if link.kind == PAGE else resolver.resolve(link, path)
        if id is not None and (id != own or link.kind == PAGE):
            found[id] = None
    return list(found)


def _keep(tx: Transaction, place: Place, folder: str, seen: Seen, plan: _Plan, sources: dict[str, Source]) -> None:
    """Store what is known of the files now."""
    rows = []
    for path in (*plan.store, *plan.touched):
        now, note = seen.known[path], plan.store.get(path)
        rows.append(
            {
                "key": sources[path].page_id if note is None else note.page.id,
                "path": path,
                "hash": now.hash,
                "category": now.category,
                "size": now.size,
                "modified_ns": now.modified_ns,
                "changed_ns": now.changed_ns,
                "links": json.dumps(sources[path].links if note is None else note.links, ensure_ascii=False),
            }
        )
    put_sources(tx, place, folder, rows)


def _resolve_again(
    tx: Transaction,
    place: Place,
    plan: _Plan,
    sources: dict[str, Source],
    targets: dict[str, Target],
    resolver: Resolver,
) -> None:
    """Let notes that did not change themselves follow targets that came, went or have another name now."""
    before = Resolver(Target(path, source.page_id, source.title) for path, source in sources.items())
    others: dict[str, list[str]] = {}
    for path, source in sources.items():
        if path in plan.store or path not in targets or not source.links:
            continue
        links = tuple(Link(*link) for link in source.links)
        now = _resolved(links, path, source.page_id, resolver)
        if now != _resolved(links, path, source.page_id, before):
            others[source.page_id] = now
    references.set_references(tx, place, others, fresh=False)
