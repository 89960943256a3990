"""MemoryManager: what an agent is doing (L0-L3), the runtime memory of the local-ai document.

Where the document keeps a file for each, memdb keeps rows of one user and session: L0 in state, L1 in
working_memory, L2 in checkpoints, L3 in tool_results.
"""

from __future__ import annotations

from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.layer import Live, Mode
from memdb.layers.runtime.checkpoints import CheckpointLayer
from memdb.layers.runtime.runs import AgentRun
from memdb.layers.runtime.state import StateLayer
from memdb.layers.runtime.tool_results import ToolResultLayer
from memdb.layers.runtime.working_memory import WorkingMemoryLayer
from memdb.storage.engine import Engine


class MemoryManager(StateLayer[Mode], WorkingMemoryLayer[Mode], CheckpointLayer[Mode], ToolResultLayer[Mode]):
    """The state, working memory, checkpoints and tool results of one session (local-ai document)."""

    def run(
        self: MemoryManager[Live], id: str, payload: dict[str, Any] | None = None, *, resume: bool = False
    ) -> AgentRun:
        """Return a run of an agent, for `async with`: its checkpoints say how it stands, also when it is told to stop.

        See memdb.layers.runtime.runs.AgentRun.

        Args:
            id: the checkpoint's id: 1 to 200 characters of A-Z, a-z, 0-9, _ and -.
            payload: what its first checkpoint holds; {} when left out.
            resume: go on from the last checkpoint under the id where that was not completed.

        Raises:
            InvalidInput: the id or the payload is not what it must be, or this is called inside a unit.
        """
        if not isinstance(self._home, Engine):
            raise InvalidInput("a unit cannot hold a run, which awaits: call manager.run outside of it")
        return AgentRun(self, id, payload, resume=resume)
