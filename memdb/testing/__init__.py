"""For tests of your own: suites that a part of yours can be run through, and a clock that stands still.

>>> report = await memdb.testing.check(memdb.testing.MEMORY_STORE, MyStore)
>>> report.raise_for_failures()

or, case by case in pytest:

>>> @pytest.mark.parametrize("case", memdb.testing.MEMORY_STORE, ids=memdb.testing.name_of)
... async def test_my_store(case):
...     await case(MyStore())

What a part must offer is in memdb.protocols. Nothing here needs a test framework.
"""

from __future__ import annotations

from memdb.testing.clock import FrozenClock
from memdb.testing.keyword_extractor import KEYWORD_EXTRACTOR
from memdb.testing.knowledge_graph import KNOWLEDGE_GRAPH
from memdb.testing.knowledge_store import KNOWLEDGE_STORE
from memdb.testing.memory_store import MEMORY_STORE
from memdb.testing.suite import Case, Report, Skipped, check, name_of

__all__ = [
    "KEYWORD_EXTRACTOR",
    "KNOWLEDGE_GRAPH",
    "KNOWLEDGE_STORE",
    "MEMORY_STORE",
    "Case",
    "FrozenClock",
    "Report",
    "Skipped",
    "check",
    "name_of",
]
