"""What a run of the command left behind, and how a person stops one."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one sentence on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("memdb: ")
        return lines[0].removeprefix("memdb: ")


Cli = Callable[..., Outcome]


def hear_ctrl_c() -> None:
    """For preexec_fn: a job in the background of a shell is born deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def press_ctrl_c(process: subprocess.Popen[bytes]) -> int:
    """Press Ctrl-C until the process ends, as a person does: one just before a read is only seen after it."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            continue
    return process.wait(0)
