"""The error family. Every error memdb raises is one of these.

MemdbError
├── NotFound            (also LookupError)    nothing has that id
│   ├── MissingFile     (also FileNotFoundError)
│   └── UnknownBlock    (also InvalidInput)   a session has no memory block of that name
├── AlreadyExists                             something has that id already
├── InvalidInput        (also ValueError)     an argument is not what it must be
├── StorageError                              the file could not do it
│   ├── Busy                                  another process held the file too long
│   ├── Corrupt                               the file is damaged
│   ├── SchemaTooNew                          a newer memdb wrote the file
│   ├── NotAMemdbFile                         the file is something else; it was not changed
│   └── Closed                                the handle is closed
├── SerializationError                        a stored value could not be read or written
├── GraphError                                a relation names a missing entity
├── RetrievalError                            a search could not be carried out
├── ModelError                                a model could not be asked, or its answer is of no use
└── MissingExtra        (also ImportError)    an optional package is not installed

A message says what was asked, what was wrong and what to do.
"""

from __future__ import annotations

import re

MAX_MESSAGE_CHARS = 480

# What would break a line, turn the text around on a terminal, or could not be written to one at all.
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class MemdbError(Exception):
    """The root of the family.

    Its text is one line of at most MAX_MESSAGE_CHARS characters, whatever the id, path or value that it names: control
    characters and lone surrogates are escaped, and of what is longer the middle is left out. `args` holds all of it.
    """

    _recoverable = False

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) > MAX_MESSAGE_CHARS:
            text = f"{text[:300]} ... {text[-150:]}"
        return _UNSHOWABLE.sub(_escaped, text)[:MAX_MESSAGE_CHARS]

    def is_recoverable(self) -> bool:
        """Whether the caller may simply go on without the answer.

        Returns:
            True for NotFound, RetrievalError and ModelError, False for all others (agcore document, section 3.5).
        """
        return self._recoverable


class NotFound(MemdbError, LookupError):
    """Nothing has the id that was asked for."""

    _recoverable = True


class MissingFile(NotFound, FileNotFoundError):
    """A file, or a record that the documents call a file, is not there."""


class AlreadyExists(MemdbError):
    """Something has that id already."""


class InvalidInput(MemdbError, ValueError):
    """An argument is not what it must be; the message names it."""


class UnknownBlock(NotFound, InvalidInput):
    """A session has no memory block of that name (Asterix document: a ValueError)."""


class StorageError(MemdbError):
    """The file could not do what was asked."""


class Busy(StorageError):
    """Another process held the file longer than the busy timeout; trying again may succeed."""


class Corrupt(StorageError):
    """The file is damaged."""


class SchemaTooNew(StorageError):
    """A newer memdb has migrated the file."""


class NotAMemdbFile(StorageError):
    """The file is not a memdb file. It was not changed."""


class Closed(StorageError):
    """The handle is closed, or belongs to another event loop or process."""


class SerializationError(MemdbError):
    """A stored value could not be turned into what it stands for, or the other way round."""


class GraphError(MemdbError):
    """A relation names an entity that is not there, or a traversal took longer than it may."""


class RetrievalError(MemdbError):
    """A search could not be carried out."""

    _recoverable = True


class ModelError(MemdbError):
    """A model could not be asked, or its answer is of no use; the message says which model and why."""

    _recoverable = True


class MissingExtra(MemdbError, ImportError):
    """An optional package is not installed; the message names the extra."""


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
