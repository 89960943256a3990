"""How many tokens a text costs: exactly, and without a network from the first count."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memdb.errors import InvalidInput
from memdb.text.shown import shown
from memdb.text.tables import TABLES, load

if TYPE_CHECKING:
    from tiktoken import Encoding

TOKENS_PER_MESSAGE = 4  # what frames a message: its start, the role's separator, its end

_MESSAGE_FIELDS = ("role", "name", "content", "tool_calls", "tool_call_id")

# tiktoken before 0.13 takes quadratic time for an unbroken run (25 s for 262,144 times "a"), and 0.14 still panics in
# o200k_base on a million spaces. So a long text is counted in chunks that end between a letter or digit and a
# space or punctuation, where every table's pattern splits too: their sum is exact. Only a run of more than 3,072
# characters without such a place is cut inside, which can move the count by a token or two a cut; 6,144 is 3 x 2,048
# because digits split in threes and repeats merge in powers of two.
_CHUNK_CHARS = 3072
_CHUNKS = re.compile(r"(?s).{3072,6144}?(?<=[^\W_])(?=[\s!-&(-/:-@[-`{-~，。、])|.{1,6144}")

# cl100k_base's own pattern for ASCII text: where it cuts a text into pieces, which are encoded each by itself.
_ASCII_PIECES = re.compile(
    r"""(?ax)
    '(?:[sdmtSDMT]|[lL]{2}|[vV][eE]|[rR][eE])
    | [^\r\nA-Za-z0-9]?+[A-Za-z]++
    | [0-9]{1,3}+
    | [ ]?[^\sA-Za-z0-9]++[\r\n]*+
    | \s++\Z | \s*[\r\n] | \s+(?!\S) | \s
    """
)
_MOST_PIECES, _LONGEST_PIECE = 20_000, 40  # that are kept: some 2 MB

# The estimate: each match of a pattern costs its rate and is taken out; what is left costs its UTF-8 bytes, the most
# that byte-pair encoding can ever give. So only what the vocabularies know well has a row. Measured on the messages of
# Django in 98 languages, code, and dialogue: 18 of 93,000 texts came out below cl100k_base, all but one of them under
# 20 characters, and none below the other tables. English comes out at 2.4 times the truth, so that Welsh is not low.
_Rates = tuple[tuple[re.Pattern[str], float], ...]
_TWO_LETTERS = r" ?(?:[A-Z][a-z]|[a-z]{1,2}|[A-Z]{1,2})"
_RATES: _Rates = (
    (re.compile(r" {1,16}(?= )"), 1.0),  # indentation; the last space belongs to the word after it
    (re.compile(_TWO_LETTERS), 1.0),
    (re.compile("[\u0400-\u045f]"), 1.0),  # Cyrillic, without the letters of Kazakh or Ossetian
    (re.compile("[\u0600-\u066d\u0e00-\u0e7f]"), 1.25),  # Arabic, Thai
    # accented Latin, Greek, Hebrew, Devanagari, Vietnamese, typographic punctuation, kana
    (re.compile("[\u00a0-\u024f\u0370-\u03ff\u0590-\u05ff\u0900-\u097f\u1e00-\u1eff\u2010-\u203f\u3000-\u30ff]"), 1.5),
    (re.compile("[\u0980-\u09ff\u4e00-\u9fff\uac00-\ud7af]"), 2.0),  # Bengali, Han, Hangul
)
_RATES_50K: _Rates = ((re.compile(_TWO_LETTERS), 1.2),)  # vocabularies of 50,000 know little but English

_warned: set[str] = set()


@runtime_checkable
class Sendable(Protocol):
    """What can say how a chat API is sent it: memdb.Message."""

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a dict in the OpenAI shape."""
        ...


class TokenCounter:
    """Counts the tokens of texts and messages in one of tiktoken's encodings. Safe to use from many threads.

    The table is read at the first count, once per process (0.2 s for cl100k_base, 0.5 s for o200k_base): from the
    folder TIKTOKEN_CACHE_DIR, else from memdb itself, which carries these two, else from the network if that is
    allowed. A file with the wrong SHA-256 is passed over. If there is none, counts are estimates, with one warning per
    name: at or above the truth on ordinary text (random letters, such as keys, may run 15% low), and never 0 for a text
    that is not empty.

    Args:
        name: cl100k_base, gpt2, o200k_base, o200k_harmony, p50k_base, p50k_edit or r50k_base.
        allow_network: download a table that is not on this machine, and keep it while the process lives.

    Raises:
        InvalidInput: no encoding has that name.
    """

    def __init__(self, name: str = "cl100k_base", *, allow_network: bool = False) -> None:
        if not isinstance(name, str) or name not in TABLES:
            raise InvalidInput(f"name must be an encoding, not {shown(name)}: one of {', '.join(TABLES)}")
        self._name = name
        self._allow_network = allow_network

    def __repr__(self) -> str:
        return f"TokenCounter({self._name!r})"

    @property
    def name(self) -> str:
        """The name of the encoding."""
        return self._name

    @property
    def exact(self) -> bool:
        """Whether counts are tiktoken's own, not estimates. Reads the table if nothing has yet."""
        return self._encoding is not None

    def count(self, text: str) -> int:
        """Count the tokens of a text. What looks like a special token counts as the ordinary text it is.

        Args:
            text: any string; a lone surrogate counts as U+FFFD.

        Returns:
            The number of tokens, 0 only for "".

        Raises:
            InvalidInput: text is not a string.
        """
        if not isinstance(text, str):
            raise InvalidInput(f"text must be text, not {type(text).__name__}")
        encoding = self._encoding
        if encoding is None:
            return _estimate(text, _RATES if TABLES[self._name].size > 100_000 else _RATES_50K)
        if len(text) <= _CHUNK_CHARS:
            if self._name == "cl100k_base" and text.isascii():
                return self._pieces.count(text)
            return len(encoding.encode_ordinary(text))
        return sum(len(encoding.encode_ordinary(chunk)) for chunk in _CHUNKS.findall(text))

    def count_messages(self, messages: Iterable[Mapping[str, Any] | Sendable]) -> int:
        """Count the tokens of chat messages: all that is sent of them, and 4 tokens a message for its frame.

        Args:
            messages: dicts in the OpenAI shape, or each a memdb.Message. Counted are role, name, content, tool_calls
                and tool_call_id; content is a string, None or a list of parts. A part counts its text; a part without
                text, a tool call and any other value count as JSON.

        Returns:
            The number of tokens, 0 for no messages.

        Raises:
            InvalidInput: messages is no list, or a message is not a mapping, or holds what JSON cannot.
        """
        if not isinstance(messages, Iterable):
            raise InvalidInput(f"messages must be a list of messages, not {type(messages).__name__}")
        return sum(TOKENS_PER_MESSAGE + sum(map(self.count, _texts_sent(message))) for message in messages)

    @cached_property
    def _pieces(self) -> _Pieces:
        assert self._encoding is not None
        return _Pieces(self._encoding)

    @cached_property
    def _encoding(self) -> Encoding | None:
        encoding = load(TABLES[self._name], allow_network=self._allow_network)
        if encoding is None and self._name not in _warned:
            _warned.add(self._name)
            warnings.warn(
                f"no table of {self._name} is on this machine, so token counts are estimates, mostly too high: put the "
                "file into TIKTOKEN_CACHE_DIR, allow the network, or reinstall memdb if it should carry the table",
                RuntimeWarning,
                stacklevel=4,  # the caller of count()
            )
        return encoding


class _Pieces(dict[str, int]):
    """How many tokens each piece of ASCII text costs in cl100k_base: words come again and again.

    150 characters of prose or code are counted in 7 to 9 us in place of 14 to 17, and a message is appended in 5 % less
    time. Random letters, of which no piece comes again, take three times as long (3,000 characters: 0.9 ms).

    Args:
        encoding: says what is not known yet.
    """

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self._encoding = encoding

    def __missing__(self, piece: str) -> int:
        tokens = len(self._encoding.encode_ordinary(piece))
        if len(self) >= _MOST_PIECES:
            self.clear()
        if len(piece) <= _LONGEST_PIECE:
            self[piece] = tokens
        return tokens

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return sum(map(self.__getitem__, _ASCII_PIECES.findall(text)))


def _texts_sent(given: Mapping[str, Any] | Sendable) -> Iterator[str]:
    # A mapping first: to ask a protocol costs 8 us.
    message = given.to_dict() if not isinstance(given, Mapping) and isinstance(given, Sendable) else given
    if not isinstance(message, Mapping):
        raise InvalidInput(f"a message must be a mapping, not {type(message).__name__}")
    for field in _MESSAGE_FIELDS:
        value = message.get(field)
        for part in value if isinstance(value, (list, tuple)) else [value]:
            text = part.get("text", part) if isinstance(part, Mapping) else part
            if text is not None:
                yield text if isinstance(text, str) else _as_json(text, field)


def _as_json(value: object, field: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{field} of a message cannot be sent as JSON: {error}") from error


def _estimate(text: str, rates: _Rates) -> int:
    tokens, rest = 1.0, text  # the one is for a short word that splits unluckily
    for pattern, rate in rates:
        rest, matches = pattern.subn("", rest)
        tokens += matches * rate
    return min(math.ceil(tokens + _utf8_length(rest)), _utf8_length(text))


def _utf8_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
