"""Whose folder it is: .memdb.json, written by the first who syncs and read by all who come after."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from memdb.errors import InvalidInput
from memdb.markdown.facts import files
from memdb.markdown.facts.files import Moved, Seen, in_thread
from memdb.storage.whole_file import sync_folder
from memdb.text.shown import shown

OWNER_FILE = ".memdb.json"
KIND = "facts"
MAX_BYTES = 64 * 1024
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Owner:
    """The .memdb.json of one folder, for one user. Whoever calls it holds the folder's lock.

    Args:
        folder: the folder's real path.
        user_id: whose folder it must be.
        like: a file whose readers may read this one, too.
        read_only: whether a folder that is nobody's stays so.
    """

    def __init__(self, folder: Path, user_id: str, like: Path | None, read_only: bool) -> None:
        self._path, self._user_id, self._like, self._read_only = folder / OWNER_FILE, user_id, like, read_only
        self._known: Seen | None = None

    async def check(self) -> None:
        """See that the folder is the user's; a folder that is nobody's yet becomes the user's.

        Raises:
            InvalidInput: it is kept for another user, or its .memdb.json does not say for whom; nothing was changed.
            StorageError: .memdb.json cannot be read or written.
            Moved: it changed meanwhile: try again.
        """
        began = time.time_ns()
        seen = await in_thread(files.look, self._path)
        if seen is None:
            if not self._read_only:
                self._known = await in_thread(_adopt, self._path, self._user_id, self._like)
            return
        if seen == self._known:
            return
        raw = await in_thread(files.read, self._path, 0, MAX_BYTES + 1)
        if await in_thread(files.look, self._path) != seen:
            raise Moved
        owner = _owner(self._path, raw)
        if owner != self._user_id:
            raise InvalidInput(
                f"{self._path.parent} is kept for the user {shown(owner)}, not for {shown(self._user_id)}: give "
                f"{shown(self._user_id)} another folder, or delete {OWNER_FILE} in it to hand it over with all it holds"
            )
        self._known = seen if seen.trusted_ns(began) >= 0 else None


def _owner(path: Path, raw: bytes) -> str:
    """Return the user whom the bytes of a .memdb.json name.

    Raises:
        InvalidInput: they name none.
    """
    found: Any = None
    if len(raw) <= MAX_BYTES:
        with suppress(ValueError, RecursionError):
            found = json.loads(raw)
    user_id = found.get("user_id") if isinstance(found, dict) and found.get("memdb") == KIND else None
    if not isinstance(user_id, str) or not user_id:
        raise InvalidInput(
            f'{path} does not say whose folder it is: write {{"memdb": "{KIND}", "user_id": "..."}} into it, or delete '
            "it, and the first user who syncs gets the folder; nothing was changed"
        )
    return user_id


def _adopt(path: Path, user_id: str, like: Path | None) -> Seen | None:
    """Make a folder a user's, if it still is nobody's, and return what its .memdb.json is now.

    Raises:
        Moved: somebody else was faster.
    """
    raw = f"{json.dumps({'memdb': KIND, 'user_id': user_id}, ensure_ascii=False)}\n".encode()
    mode = 0o600 if like is None else like.stat().st_mode & 0o666
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}.unfinished")
    try:
        _write(unfinished, raw, mode)
        try:
            os.link(unfinished, path)  # whole, and only where nothing is
        except FileExistsError:
            raise Moved from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _write(path, raw, mode)
    finally:
        with suppress(OSError):
            unfinished.unlink()
    sync_folder(path.parent)
    return files.look(path)


def _write(path: Path, raw: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise Moved from None
    with open(descriptor, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
        files.date_back(file.fileno())
