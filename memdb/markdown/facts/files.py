"""The files of a fact folder on the disk: looking at them, writing them whole, appending, one process at a time."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from memdb.errors import Busy, InvalidInput
from memdb.layers.facts.mirror import Mirrored
from memdb.storage.whole_file import sync_folder, told_of, written_whole

try:
    import fcntl
except ImportError:  # Windows has no flock: one process at a time is the user's care there
    fcntl = None  # type: ignore[assignment]

FRESH_NS = 2_000_000_000  # a file changed so lately may change again without its time saying so
OWN_AGE_NS = 3_000_000_000  # how far what we write is dated back: whatever changes it later changes its time, too
LOCK_SECONDS = 10.0
BLOCK = 1 << 20
EMPTY = Mirrored(hashlib.sha256().hexdigest(), 0, -1)

R = TypeVar("R")


class Seen(NamedTuple):
    """What the file system says of a file.

    Args:
        size: how many bytes it has.
        modified_ns: its time of modification.
        identity: tells it from a file that takes its place.
    """

    size: int
    modified_ns: int
    identity: tuple[int, ...]

    def is_as(self, known: Mirrored) -> bool:
        """Whether it need not be read: it is what it was when it was mirrored."""
        return (self.size, self.modified_ns) == (known.size, known.modified_ns)

    def trusted_ns(self, now_ns: int) -> int:
        """Return the time to keep of a file that was read beginning at `now_ns`: -1 where it may still be changing."""
        return self.modified_ns if now_ns - self.modified_ns >= FRESH_NS else -1


class Moved(Exception):
    """A file became another one while it was to be written: look again."""


@asynccontextmanager
async def alone(folder: Path) -> AsyncIterator[None]:
    """Keep all others who take care out of a folder: other processes, and other handles of this one.

    The lock is the folder's own, so that nothing is left in it. Where the disk has no locks, it holds nobody off.

    Raises:
        Busy: somebody held it for LOCK_SECONDS.
    """
    if fcntl is None:
        yield
        return
    with told_of(folder, "open"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _lock(descriptor):
            if time.monotonic() >= deadline:
                raise Busy(f"another process held {folder} for {LOCK_SECONDS:g} s; try again, or find who holds it")
            await asyncio.sleep(random.uniform(0.001, 0.01))
        yield
    finally:
        # Said, not only closed: a process that was forked meanwhile holds the same lock for as long as it lives.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a disk without locks
        return True
    return True


async def in_thread(work: Callable[..., R], path: Path, *args: Any) -> R:
    """Run work(path, *args) beside the event loop; what the system says of the file is raised as a StorageError."""

    def told() -> R:
        with told_of(path, "use"):
            return work(path, *args)

    return await asyncio.to_thread(told)


def look(path: Path) -> Seen | None:
    """Return what the file system says of a file, None when there is nothing.

    Raises:
        InvalidInput: something else than an ordinary file is there.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise InvalidInput(f"{path} is a symbolic link; put the file itself there, nothing was changed")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is no ordinary file; move it away, nothing was changed")
    return _seen(status)


def _seen(status: os.stat_result) -> Seen:
    return Seen(status.st_size, status.st_mtime_ns, (status.st_dev, status.st_ino, status.st_ctime_ns))


def read(path: Path, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` up to `end`, or to its end where that comes first."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(end - start)


def hash_on(path: Path, digest: Any, start: int, end: int) -> Any:
    """Return a digest that goes on with the bytes of a file from `start` up to `end`."""
    digest = digest.copy()
    with open(path, "rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            digest.update(block)
            start += len(block)
    return digest


def decoded(path: Path, raw: bytes) -> str:
    """Return bytes of a file as text.

    Raises:
        InvalidInput: they are no UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 (byte {error.start + 1} of what is new in it); mend it, nothing was changed"
        ) from None


def write(path: Path, raw: bytes, seen: Seen | None, like: Path | None) -> Mirrored:
    """Write a file whole, in place of the one that was seen, and return what it is now.

    Args:
        seen: what was there; None for nothing.
        like: a file whose readers may read this one, too, where there is none yet.

    Raises:
        Moved: something else is there now.
        StorageError: it cannot be written; what was there is as it was.
    """
    with written_whole(path, path if seen is not None else like) as file:
        file.write(raw)
        file.flush()
        modified_ns = date_back(file.fileno())
        if look(path) != seen:
            raise Moved
    return Mirrored(hashlib.sha256(raw).hexdigest(), len(raw), modified_ns)


def create(path: Path, like: Path | None) -> None:
    """Make an empty file.

    Raises:
        Moved: something is there.
    """
    mode = 0o600 if like is None else like.stat().st_mode & 0o666
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except FileExistsError:
        raise Moved from None
    sync_folder(path.parent)


def append(path: Path, raw: bytes, seen: Seen) -> tuple[Seen, int]:
    """Append bytes to a file.

    Args:
        seen: what the file was when it was looked at.

    Returns:
        What it is now, and the time of modification to keep: -1 where that is not to be trusted.

    Raises:
        Moved: it was another one, or somebody else appended at the same moment.
    """
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "ab") as file:
        if _seen(os.fstat(file.fileno())) != seen:
            raise Moved
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
        modified_ns = date_back(file.fileno())
        now = _seen(os.fstat(file.fileno()))
    if now.size != seen.size + len(raw):
        raise Moved
    return now, modified_ns


def date_back(descriptor: int) -> int:
    """Give a file an older time than any later change of it will have, and return that; -1 where that cannot be done.

    Times of files are coarse: an edit of the same length within the same tick would else go unseen.
    """
    at = time.time_ns() - OWN_AGE_NS
    try:
        os.utime(descriptor, ns=(at, at))
        return os.fstat(descriptor).st_mtime_ns
    except (OSError, TypeError):  # another user's file; Windows
        return -1


def set_aside(path: Path) -> Path:
    """Give a file another name, beside its own, and return that: nothing of it is lost."""
    aside, number = path.with_name(f"{path.name}.orig"), 1
    while os.path.lexists(aside):
        number += 1
        aside = path.with_name(f"{path.name}.orig{number}")
    os.rename(path, aside)
    sync_folder(path.parent)
    return aside
