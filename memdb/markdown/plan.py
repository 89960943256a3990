"""Which page each note is: decided from what was seen of a folder and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from memdb.layers.sources import Source
from memdb.markdown.note import Note
from memdb.markdown.report import Skipped


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a file.

    Args:
        hash: SHA-256 of its bytes.
        category: what the sync was told.
        size, modified_ns, changed_ns: what the file system says; modified_ns is -1 where that is not to be trusted.
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
class Seen:
    """What was seen of a folder.

    Args:
        base: what was known of it before; when others have changed that, this view may be old.
        category: of pages whose notes name none.
        known: the notes by path.
        skipped: what was left out.
        staying: paths of which nobody can tell what became of them: their pages stay.
    """

    base: dict[str, Source]
    category: str
    known: dict[str, Known] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    staying: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Plan:
    """What will be done.

    Args:
        store: the notes to store, by path.
        touched: paths of files that say what they said, but were written again.
        pages: path -> the page that its note to store is; the others make new ones.
        removed: pages that go.
        skipped: notes that are left out because of their ids; the pages that they had stay.
    """

    store: dict[str, Note]
    touched: list[str]
    pages: dict[str, Source] = field(default_factory=dict)
    removed: list[Source] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def make_plan(seen: Seen) -> Plan:
    """Return what is to be done, with every id granted that a note asks for; `refuse_taken` comes next."""
    plan = Plan({}, [])
    for path, now in sorted(seen.known.items(), key=lambda item: item[0]):
        source = seen.base.get(path)
        if source is None or source.hash != now.hash or source.category != now.category:
            if now.note is not None:
                plan.store[path] = now.note
        elif not now.is_like(source):
            plan.touched.append(path)
    free = {
        path: source
        for path, source in seen.base.items()
        if path in plan.store or (path not in seen.known and path not in seen.staying)
    }
    _match(plan, seen, free)
    plan.removed = [free[path] for path in sorted(free)]
    return plan


def _match(plan: Plan, seen: Seen, free: dict[str, Source]) -> None:
    """Say which pages the notes to store are: by the id that a note names, what it says, its own id, its path."""

    def take(page_of: Callable[[str], Source | None]) -> None:
        for path in sorted(plan.store.keys() - plan.pages.keys()):
            source = page_of(path)
            if source is not None:
                plan.pages[path] = free.pop(source.path)

    by_id = {source.page_id: source for source in free.values()}
    alike = _Alike(free)

    def same_id(path: str) -> Source | None:
        source = by_id.get(plan.store[path].page.id)
        return source if source is not None and source.path in free else None

    def named_id(path: str) -> Source | None:
        page = plan.store[path].page
        return None if page.id == f"{page.category}/{path}" else same_id(path)

    take(named_id)
    take(lambda path: alike.find(path, seen.known[path].hash))
    take(same_id)
    take(free.get)


class _Alike:
    """Free pages by what their files held: of several that at the same path, then of the same name, then the first."""

    def __init__(self, free: dict[str, Source]) -> None:
        self._free = free
        self._named: dict[tuple[str, str], Iterator[Source]] = {}
        self._all: dict[str, Iterator[Source]] = {}
        named: dict[tuple[str, str], list[Source]] = {}
        every: dict[str, list[Source]] = {}
        for path in sorted(free):
            source = free[path]
            named.setdefault((source.hash, _name(path)), []).append(source)
            every.setdefault(source.hash, []).append(source)
        self._named = {key: iter(sources) for key, sources in named.items()}
        self._all = {key: iter(sources) for key, sources in every.items()}

    def find(self, path: str, hash: str) -> Source | None:
        """Return the page of a free file that held the same."""
        own = self._free.get(path)
        if own is not None and own.hash == hash:
            return own
        for waiting in (self._named.get((hash, _name(path))), self._all.get(hash)):
            # Each is looked at once: 10,000 empty notes in a renamed folder are no more work than others.
            for source in waiting or ():
                if source.path in self._free:
                    return source
        return None


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def refuse_taken(plan: Plan, base: dict[str, Source], elsewhere: Collection[str]) -> None:
    """Leave out notes whose id is another note's, or that of a page that did not come from this folder.

    Args:
        base: what is known of the folder.
        elsewhere: ids of pages that did not come from it.
    """
    leaving = {source.page_id for source in (*plan.removed, *plan.pages.values())}
    owner = {source.page_id: path for path, source in base.items() if source.page_id not in leaving}
    # Who has an id keeps it.
    for path in sorted(plan.store, key=lambda path: (not _keeps_id(plan, path), path)):
        if path not in plan.store:
            continue
        id = plan.store[path].page.id
        if id in owner:
            _refuse(plan, path, owner)
        elif id in elsewhere:
            reason = f"the id {id!r} is that of a page from elsewhere; give the note another id in its front matter"
            _refuse(plan, path, owner, reason)
        else:
            owner[id] = path


def _keeps_id(plan: Plan, path: str) -> bool:
    return path in plan.pages and plan.pages[path].page_id == plan.store[path].page.id


def _refuse(plan: Plan, path: str, owner: dict[str, str], reason: str = "") -> None:
    """Leave a note out, and then the one that was to have the id of the page that stays in consequence, and so on."""
    refused: str | None = path
    while refused is not None:
        id = plan.store.pop(refused).page.id
        reason = reason or f"the id {id!r} is that of {owner[id]}; give one of the two another id in its front matter"
        plan.skipped.append(Skipped(refused, reason))
        page = plan.pages.pop(refused, None)
        refused, reason = None, ""
        if page is not None and page.path in plan.store:  # another page has its place now
            plan.removed.append(page)
        elif page is not None:
            rival = owner.get(page.page_id)
            owner[page.page_id] = page.path
            refused = rival if rival in plan.store else None
