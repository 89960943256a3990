"""Stage 2: the question which of the candidates to load, as a model is asked it, and its answer (local-ai document)."""

from __future__ import annotations

from collections.abc import Iterable

from memdb.layers.notes.index import IndexEntry
from memdb.text.answer import lists_of_texts, one_line

MAX_SELECTED = 5  # local-ai document: TOP_N
MAX_QUERY_CHARS = 2_000
MAX_TITLE_CHARS = 200
MAX_DESCRIPTION_CHARS = 500
MAX_KEYWORDS_CHARS = 300

_PROMPT = """You are a memory file selector.
Given a user query and available file structure metadata, return ONLY a JSON array of filenames to load.

QUERY:
{query}

CANDIDATE FILES:
{files}

Select the most relevant files (up to {most}). Return ONLY a JSON array of filenames."""
_FILE = """File: {shown}
  Title: {title}
  Category: {category}
  Description: {description}
  Keywords: {keywords}"""


class Selection:
    """The question about some candidates.

    Query and metadata stand on one line each, whatever they hold: nothing of them can end the list or begin another
    part of the prompt.

    Args:
        query: the query.
        candidates: (name, what the index says of it), best first.

    Attributes:
        prompt: what the model is asked.
    """

    def __init__(self, query: str, candidates: Iterable[tuple[str, IndexEntry]]) -> None:
        self._names: dict[str, str] = {}  # as shown -> the name
        self._others: dict[str, str | None] = {}  # as the model may call it, too -> the name, if it is the only one
        files = [self._file(name, entry) for name, entry in candidates]
        self.prompt = _PROMPT.format(
            query=one_line(query, MAX_QUERY_CHARS), files="\n---\n".join(files), most=MAX_SELECTED
        )

    def _file(self, name: str, entry: IndexEntry) -> str:
        shown = one_line(name) or "(no name)"
        while shown in self._names:  # two names that differ in white space only
            shown += "'"
        self._names[shown] = name
        for form in map(one_line, entry.note.forms):
            self._others[form] = None if form in self._others and self._others[form] != name else name
        return _FILE.format(
            shown=shown,
            title=one_line(entry.title, MAX_TITLE_CHARS),
            category=one_line(entry.note.category, MAX_TITLE_CHARS),
            description=one_line(entry.description, MAX_DESCRIPTION_CHARS),
            keywords=one_line(", ".join(entry.keywords), MAX_KEYWORDS_CHARS),
        )

    def chosen(self, answer: str) -> list[str] | None:
        """Return the names that an answer chooses, in its order, each once, at most MAX_SELECTED.

        Names that were not offered are dropped. None where the answer holds no JSON array of texts.
        """
        chosen: list[str] | None = None
        for given in lists_of_texts(answer):
            meant = (self._names.get(one) or self._others.get(one) for one in map(one_line, given))
            chosen = list(dict.fromkeys(name for name in meant if name is not None))[:MAX_SELECTED]
            if chosen:  # an array before it may be an example of the form, or what was looked at
                break
        return chosen
