"""What is made of a user's experience takes its engine, and says so where it is given something else."""

from __future__ import annotations

from memdb.errors import InvalidInput
from memdb.layers.layer import Mode
from memdb.retrieval.experience.engine import MemoryEngine


def check_engine(engine: MemoryEngine[Mode], what: str) -> MemoryEngine[Mode]:
    """Return `engine` if it is a MemoryEngine.

    Args:
        engine: what was given.
        what: what it was given to, for the message.

    Raises:
        InvalidInput: it is something else, such as a Database, a Memory or a Scope.
    """
    given: object = engine
    if not isinstance(given, MemoryEngine):
        raise InvalidInput(
            f"{what} takes a user's memory.engine, not {type(given).__name__}: give db.memory(user).engine"
        )
    return engine
