"""tiktoken's rank tables: which there are, where they are found, and an Encoding made of one.

The two tables of today's models lie beside this file, gzipped, under tiktoken's licence (LICENSE here). tiktoken itself
downloads them on first use, without a time-out.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

NETWORK_TIMEOUT_SECONDS = 30.0

_CARRIED = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Table:
    """A rank file of tiktoken: its name, number of tokens, and sum; the pattern that splits a text before merging."""

    name: str
    size: int
    sha256: str
    pattern: str

    @property
    def url(self) -> str:
        """Where tiktoken downloads the file."""
        return f"https://openaipublic.blob.core.windows.net/encodings/{self.name}.tiktoken"


_CUT_50K = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
_CUT_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_CUT_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_CL100K = Table("cl100k_base", 100_256, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", _CUT_CL100K)
_O200K = Table("o200k_base", 199_998, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", _CUT_O200K)
_P50K = Table("p50k_base", 50_280, "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", _CUT_50K)
_R50K = Table("r50k_base", 50_256, "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", _CUT_50K)

# Encodings that differ only in their special tokens share a table: a user's text is never a special token.
TABLES = {
    "cl100k_base": _CL100K,
    "gpt2": _R50K,  # its own two files say the same ranks
    "o200k_base": _O200K,
    "o200k_harmony": _O200K,
    "p50k_base": _P50K,
    "p50k_edit": _P50K,
    "r50k_base": _R50K,
}

_lock = threading.Lock()
_encodings: dict[str, Encoding] = {}  # by table, for the life of the process: 40 MB for cl100k_base, 80 for o200k_base


def _renew() -> None:
    """Start anew in a forked child: another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def load(table: Table, *, allow_network: bool) -> Encoding | None:
    """Return the encoding of a table without its special tokens, read at most once per process.

    Args:
        table: one of TABLES.
        allow_network: download the file if it is nowhere on this machine.

    Returns:
        The encoding, or None if the file was nowhere whole.
    """
    with _lock:
        if table.name not in _encodings:
            ranks = _find(table, allow_network)
            if ranks is None:
                return None
            _encodings[table.name] = _build(table, ranks)
        return _encodings[table.name]


def _find(table: Table, allow_network: bool) -> bytes | None:
    for source in (_from_cache, _from_package, _from_network) if allow_network else (_from_cache, _from_package):
        try:
            ranks = source(table)
        except Exception:  # absent, unreadable or damaged: gzip and HTTP alone raise five unrelated kinds
            continue
        if hashlib.sha256(ranks).hexdigest() == table.sha256:
            return ranks
    return None


def _from_cache(table: Table) -> bytes:
    key = hashlib.sha1(table.url.encode(), usedforsecurity=False).hexdigest()  # the file name that tiktoken gives it
    return Path(os.environ["TIKTOKEN_CACHE_DIR"], key).read_bytes()


def _from_package(table: Table) -> bytes:
    return gzip.decompress((_CARRIED / f"{table.name}.tiktoken.gz").read_bytes())


def _from_network(table: Table) -> bytes:
    from urllib.request import urlopen

    with urlopen(table.url, timeout=NETWORK_TIMEOUT_SECONDS) as reply:
        return bytes(reply.read())


def _build(table: Table, ranks: bytes) -> Encoding:
    from tiktoken import Encoding  # not at the head: a process that never counts should not pay for it

    lines = (line.split() for line in ranks.splitlines())
    merges = {binascii.a2b_base64(token): int(rank) for token, rank in lines}
    return Encoding(table.name, pat_str=table.pattern, mergeable_ranks=merges, special_tokens={})
