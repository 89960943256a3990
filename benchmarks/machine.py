"""What the figures were taken with: versions, and the machine."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import memdb
from benchmarks.figures import Times

PACKAGES = ("aiosqlite", "alembic", "pydantic", "sqlalchemy", "tiktoken")
PAGE_BYTES = 4096


def versions() -> dict[str, Any]:
    """Return the versions of Python, SQLite, memdb and what memdb stands on."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "memdb": memdb.__version__,
        "packages": {name: _version(name) for name in PACKAGES},
    }


def machine(folder: Path) -> dict[str, Any]:
    """Return the processor, the filesystem of `folder` and what one fsync costs there."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "filesystem": _filesystem(folder),
        "fsync_us": fsync_times(folder).figures(),
    }


def fsync_times(folder: Path, count: int = 100) -> Times:
    """Return what one fsync takes after one page of a file was overwritten in place, in microseconds."""
    path = folder / "fsync"
    times = Times()
    with path.open("wb", buffering=0) as file:
        file.write(bytes(PAGE_BYTES * 16))
        os.fsync(file.fileno())
        for number in range(count):
            file.seek(PAGE_BYTES * (number % 16))
            file.write(os.urandom(PAGE_BYTES))
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.add(time.perf_counter() - start)
    path.unlink()
    return times


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _filesystem(folder: Path) -> str:
    """Return the type of the filesystem that holds `folder`: of the mounts above it, the nearest."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    where = folder.resolve()
    fields = [line.split() for line in mounts.read_text().splitlines()]
    above = [(len(parts[1]), parts[2]) for parts in fields if where.is_relative_to(parts[1])]
    return max(above)[1] if above else "unknown"
