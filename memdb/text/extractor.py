"""Keywords of a query, tags of a name: by rule, without a model (agcore document, KeywordExtractor and tag rules)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from memdb.errors import InvalidInput
from memdb.text.keywords import name_parts
from memdb.text.query import cleaned
from memdb.text.scripts import RUN, fold, tokens
from memdb.text.stopwords import STOP_WORDS

MAX_KEYWORDS = 64
MAX_TAGS = 8
MAX_TAG_CHARS = 200  # a longer word is no name
MAX_FORMS = 64
LOOKED_CHARS = 20_000  # of a query or a name

# What is said between the things that are named, in scripts without spaces. A character that stands in many words
# (Chinese 对, 从, 其) is not here, and the commonest words that hold one are spared: 存在, 目的, 了解.
_CHINESE = (
    "为什么|怎么样|什么样|有什么|是什么|是否|什么|怎么|怎样|如何|多少|以及|或者|有关|关于|请问|哪[一两三几]?[个些里种位]|"
    "(?<!目)的(?!确)|了(?!解)|是|(?<![存现正实潜内外所])在|和(?![平谐])|(?<!参)与|及|吗|呢|吧|啊"
)
_JAPANESE = (
    "について|における|による|とは|では|には|から|まで|です|ですか|ますか|した|する|の|は|が|を|に|へ|と|も|で|や|か"
)
_THAI = "อย่างไร|เพราะ|ทำไม|อะไร|ครับ|ค่ะ|หรือ|ของ|และ|คือ|ที่|กับ"
_HIRAGANA = "\u3041-\u309f"
# Japanese particles count where nothing else is written in hiragana beside them (the と of ひと is none); は, が and を
# also at the end of what is.
_FUNCTION = re.compile(
    f"{_CHINESE}|{_THAI}|(?<![{_HIRAGANA}])(?:{_JAPANESE})++(?![{_HIRAGANA}])|[はがを](?![{_HIRAGANA}])"
)

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_HANGUL = re.compile("[\uac00-\ud7ff]+")
_LENGTHS = (4, 2, 3)  # of the strings in Chinese that may be a name: most have an even number of characters
_PARTICLE = 2  # characters that a Korean particle has at most
# What parts words beside white space: a dot not between digits (v1.2.3 stays one), two hyphens.
_PARTING = re.compile(r"(?<!\d)\.|\.(?!\d)|--+")
_JOINS = re.compile("[-_.]+")
# A name is cut before the G of StateGraph and the S of HTTPServer, but not in iPhone, B2B, or before the s of PDFs.
_HUMP = re.compile(r"(?<=[A-Za-z][a-z])(?=[A-Z])|(?<=[a-z][0-9])(?=[A-Z][a-z])|(?<=[A-Z0-9])(?=[A-Z][a-z])(?![A-Z]s\b)")


class SimpleKeywordExtractor:
    """Splits a query at what is neither letter nor digit, without stop words and words of one character.

    The document's default extractor. A name joined by hyphens, underscores or dots between digits (state_graph,
    state-graph, v1.2.3) is a keyword as a whole, as tags and titles hold it, and by its parts. Text of a script without
    spaces is cut at words that say nothing, such as 的; what remains is a keyword, then each of its runs of one script,
    then the strings of 4, 2 and 3 characters of a Chinese run and a Korean run without its last one or two, since any
    of them may be what a thing is called.

    Args:
        stop_words: words that are left out, whatever their case.

    Raises:
        InvalidInput: stop_words is no list of texts.
    """

    def __init__(self, stop_words: Collection[str] = STOP_WORDS) -> None:
        if isinstance(stop_words, str | bytes) or not isinstance(stop_words, Collection):
            raise InvalidInput(f"stop_words must be a list of words, not {type(stop_words).__name__}")
        if not all(isinstance(word, str) for word in stop_words):
            raise InvalidInput("stop_words must hold words, each a text")
        self._stop_words = frozenset(fold(word) for word in stop_words)

    def extract(self, query: str) -> list[str]:
        """Return the keywords of a query, at most MAX_KEYWORDS: words in order of appearance, then parts of words.

        Each is spelled as in the query and given once whatever its case; none for a query of stop words alone. A single
        character of a script without spaces (猫) is a keyword when the query has no other. A word of more than
        MAX_TAG_CHARS is none.

        Args:
            query: any text; of a very long one the first LOOKED_CHARS are read.
        """
        words: dict[str, str] = {}
        singles: dict[str, str] = {}
        runs: list[str] = []
        parts: dict[str, str] = {}
        for word in _words(query[:LOOKED_CHARS]):
            if len(words) >= MAX_KEYWORDS:
                break
            if RUN.search(word) is None:
                self._add(words, [word])
                self._add(parts, _JOINS.split(word))
            else:
                for piece in _pieces(word):
                    self._add(singles if len(piece) == 1 else words, [piece], least=1)
                    runs += _runs(piece)
        self._add(parts, runs)
        self._add(parts, _strings(runs))
        found = words | {key: part for key, part in parts.items() if key not in words} or singles
        return list(found.values())[:MAX_KEYWORDS]

    def _add(self, found: dict[str, str], words: Iterable[str], least: int = 2) -> None:
        """Add words under their folded form, but for stop words and those too short, up to MAX_KEYWORDS."""
        for word in words:
            if len(found) >= MAX_KEYWORDS:
                return
            key = fold(word)
            if least <= len(word) <= MAX_TAG_CHARS and key not in self._stop_words:
                found.setdefault(key, word)


def tag_forms(keywords: Sequence[str]) -> list[str]:
    """Return other spellings under which what keywords name may be a tag.

    StateGraph and state_graph give state-graph, gpt4 gives gpt-4 and GPT-4 gpt4; two neighbours ("state", "graph") give
    their pair joined by a hyphen.

    Returns:
        Lower case, distinct, none that is a keyword itself, those of one keyword first, at most MAX_FORMS.
    """
    forms: dict[str, None] = {}
    short = [keyword if len(keyword) <= MAX_TAG_CHARS else "" for keyword in keywords[:MAX_FORMS]]
    words = [[] if RUN.search(keyword) else _name_words(keyword) for keyword in short]
    for keyword, parts in zip(short, words, strict=True):
        for cut in (parts, name_parts(keyword) if parts and keyword.isascii() else []):
            forms |= dict.fromkeys(("-".join(cut), "".join(cut))) if len(cut) > 1 else {}
    forms |= {f"{first[0]}-{second[0]}": None for first, second in pairwise(words) if len(first) == len(second) == 1}
    known = {keyword.lower() for keyword in keywords}
    return [form for form in forms if form not in known and len(form) <= MAX_TAG_CHARS][:MAX_FORMS]


def tags_from_name(name: str) -> list[str]:
    """Return the tags that a name gives by rule: its parts, then the whole joined by hyphens (agcore document).

    StateGraph, state-graph, state_graph and "State Graph" give state, graph, state-graph; HTTPServer2 gives http,
    server2, http-server2. Parts of one letter and stop words are left out; a name of one part gives itself.

    Returns:
        Lower case, distinct, at most MAX_TAGS of at most MAX_TAG_CHARS, the whole always among them; none for a name
        without letter or digit.

    Raises:
        InvalidInput: the name is no text.
    """
    if not isinstance(name, str):
        raise InvalidInput(f"name must be text, not {type(name).__name__}")
    words = _name_words(name[:LOOKED_CHARS])
    whole = "-".join(words)[:MAX_TAG_CHARS].rstrip("-")
    if not whole:
        return []
    telling = [word[:MAX_TAG_CHARS] for word in words if word not in STOP_WORDS and (len(word) > 1 or RUN.match(word))]
    parts = [part for part in dict.fromkeys(telling) if part != whole] if len(words) > 1 else []
    return [*parts[: MAX_TAGS - 1], whole]


class _Outside(dict[int, str]):
    """A translation that blanks what no word holds, as the index does, and leaves what joins the parts of a name."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        value = self[code] = char if char in "-_." or tokens(char) else " "
        return value


_OUTSIDE = _Outside()


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text with what joins them inside: state_graph, state-graph, v1.2.3."""
    for chunk in cleaned(text).translate(_OUTSIDE).split():
        for word in _PARTING.split(chunk):
            if bare := word.strip("-_"):
                yield bare


def _pieces(word: str) -> Iterator[str]:
    """Yield what words that say nothing part in a text without spaces."""
    for piece in _FUNCTION.split(word):
        if bare := piece.strip("-_."):
            yield bare


def _runs(piece: str) -> list[str]:
    """Return the runs of one script in a piece, and the words of other scripts between them."""
    spaced = RUN.sub(lambda run: f" {run.group()} ", piece)
    return [bare for run in spaced.split() if (bare := run.strip("-_."))]


def _strings(runs: Sequence[str]) -> Iterator[str]:
    """Yield what in runs may be a name: strings of Chinese by their length, Korean without particles."""
    for run in runs:
        if _HANGUL.fullmatch(run):
            yield from (run[:-cut] for cut in range(1, _PARTICLE + 1) if len(run) - cut > 1)
    for length in _LENGTHS:
        for run in runs:
            if len(run) > length and _HAN.fullmatch(run):
                yield from (run[at : at + length] for at in range(len(run) - length + 1))


def _name_words(name: str) -> list[str]:
    """Return the lower-cased parts of a name: at humps, and at what is neither letter nor digit."""
    return [part.lower() for word in tokens(cleaned(name)) for part in (_humps(word) if word.isascii() else [word])]


def _humps(word: str) -> list[str]:
    """Return the humps of a word, or the word where one is too short to be a word: SQLite and OpenAI are one."""
    parts = _HUMP.split(word)
    return parts if all(len(part) > 2 or not part.isalpha() for part in parts) else [word]
