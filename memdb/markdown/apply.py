"""What a sync writes: the difference between what was seen of a folder and what is known of it. A unit."""

from __future__ import annotations

import json

from memdb.layers import references
from memdb.layers.knowledge import LAYER, KnowledgePage, KnowledgeStore
from memdb.layers.layer import Inside
from memdb.layers.reading import numbers
from memdb.layers.record import Place
from memdb.layers.records import remove_many, rename
from memdb.layers.sources import Source, free_paths, of_folder, put_sources
from memdb.markdown.links import Link
from memdb.markdown.note import PAGE
from memdb.markdown.plan import Plan, Seen, make_plan, refuse_taken
from memdb.markdown.report import SyncReport
from memdb.markdown.resolve import Resolver, Target, names_of_link, names_of_target
from memdb.scope import Scope
from memdb.storage.transaction import Transaction
from memdb.text.check import MAX_ID_CHARS

BULK = 5_000  # pages of one statement's worth of models in memory


def apply(tx: Transaction, user_id: str, folder: str, seen: Seen) -> SyncReport | None:
    """Bring a user's pages in step with what was seen of a folder; None when it must be read again."""
    place = Place.of(LAYER, Scope(user_id))
    if of_folder(tx, user_id, folder) != seen.base:  # another sync was faster
        return None
    plan = make_plan(seen)
    ids = {note.page.id for note in plan.store.values()} - {source.page_id for source in seen.base.values()}
    refuse_taken(plan, seen.base, numbers(tx, place, ids))
    after = _targets(plan, seen.base)
    resolver = Resolver(after)
    _move(tx, place, folder, plan)
    _store(tx, place, plan, resolver)
    _keep(tx, place, folder, seen, plan)
    _resolve_again(tx, place, plan, seen.base, after, resolver)
    return _report(seen, plan)


def _targets(plan: Plan, base: dict[str, Source]) -> list[Target]:
    """Return the notes of the folder as they will be."""
    gone = {source.path for source in (*plan.removed, *plan.pages.values())}
    staying = [_target(source) for path, source in base.items() if path not in gone]
    return staying + [Target(path, note.page.id, note.page.title) for path, note in plan.store.items()]


def _target(source: Source) -> Target:
    return Target(source.path, source.page_id, source.title)


def _move(tx: Transaction, place: Place, folder: str, plan: Plan) -> None:
    """Remove pages whose files are gone, and give others the paths and ids that they have now."""
    remove_many(tx, place, [source.page_id for source in plan.removed])
    free_paths(tx, place, folder, [source.path for path, source in plan.pages.items() if source.path != path])
    moves = {
        source.page_id: plan.store[path].page.id
        for path, source in plan.pages.items()
        if source.page_id != plan.store[path].page.id
    }
    for old in moves:  # aside first: an id may be free only once another has moved
        rename(tx, place, old, _aside(old))
    for old, new in moves.items():
        rename(tx, place, _aside(old), new)


def _aside(id: str) -> str:
    return "\x01" * MAX_ID_CHARS + id  # too long for any page's


def _store(tx: Transaction, place: Place, plan: Plan, resolver: Resolver) -> None:
    """Store the notes; a page keeps what belongs to it."""
    store: KnowledgeStore[Inside] = KnowledgeStore(Scope(place.user_id), tx)
    paths = list(plan.store)
    for at in range(0, len(paths), BULK):
        store.add_pages([_page(plan, path, resolver) for path in paths[at : at + BULK]], replace=True)


def _page(plan: Plan, path: str, resolver: Resolver) -> KnowledgePage:
    note = plan.store[path]
    return note.page.model_copy(update={"references": _resolved(note.links, path, note.page.id, resolver)})


def _resolved(links: tuple[Link, ...], path: str, own: str, resolver: Resolver) -> list[str]:
    """Return the pages that links lead to, each once, in order; a page does not refer to itself by a link."""
    found: dict[str, None] = {}
    for link in links:
        id = link.target if link.kind == PAGE else resolver.resolve(link, path)
        if id is not None and (id != own or link.kind == PAGE):
            found[id] = None
    return list(found)


def _keep(tx: Transaction, place: Place, folder: str, seen: Seen, plan: Plan) -> None:
    """Store what is known of the files now."""
    rows = []
    for path in (*plan.store, *plan.touched):
        now, note = seen.known[path], plan.store.get(path)
        rows.append(
            {
                "key": seen.base[path].page_id if note is None else note.page.id,
                "path": path,
                "hash": now.hash,
                "category": now.category,
                "size": now.size,
                "modified_ns": now.modified_ns,
                "changed_ns": now.changed_ns,
                "links": json.dumps(seen.base[path].links if note is None else note.links, ensure_ascii=False),
            }
        )
    put_sources(tx, place, folder, rows)


def _resolve_again(
    tx: Transaction, place: Place, plan: Plan, base: dict[str, Source], after: list[Target], resolver: Resolver
) -> None:
    """Let notes that did not change themselves follow targets that came, went or have another name now."""
    before = [_target(source) for source in base.values()]
    names = {name for target in set(before) ^ set(after) for name in names_of_target(target)}
    if not names:
        return
    earlier = Resolver(before)
    gone = {source.path for source in (*plan.removed, *plan.pages.values())}
    others: dict[str, list[str]] = {}
    for path, source in base.items():
        links = tuple(Link(*link) for link in source.links)
        if path in gone or not any(name in names for link in links for name in names_of_link(link)):
            continue
        now = _resolved(links, path, source.page_id, resolver)
        if now != _resolved(links, path, source.page_id, earlier):
            others[source.page_id] = now
    references.set_references(tx, place, others, fresh=False)


def _report(seen: Seen, plan: Plan) -> SyncReport:
    report = SyncReport(skipped=sorted([*seen.skipped, *plan.skipped]))
    report.removed = [source.page_id for source in plan.removed]
    for path, note in plan.store.items():
        page = plan.pages.get(path)
        if page is None:
            report.added.append(note.page.id)
        elif (page.path, page.page_id) == (path, note.page.id):
            report.changed.append(note.page.id)
        else:
            report.renamed.append((page.page_id, note.page.id))
    report.unchanged = len(seen.known) - len(plan.store) - len(plan.skipped)
    return report
