"""For tests of your own: suites that a part of yours can be run through, and stand-ins for the clock and for models.

>>> report = await memdb.testing.check(memdb.testing.MEMORY_STORE, MyStore)
>>> report.raise_for_failures()

or, case by case in pytest:

>>> @pytest.mark.parametrize("case", memdb.testing.MEMORY_STORE, ids=memdb.testing.name_of)
... async def test_my_store(case):
...     await case(MyStore())

What a part must offer is in memdb.protocols. FrozenClock is a clock that stands still, ScriptedModel a chat model that
answers what the test says, HashingEmbedder an embedder without a model. Nothing here needs a test framework.
"""

from __future__ import annotations

from memdb.testing.clock import FrozenClock
from memdb.testing.hashing_embedder import HashingEmbedder
from memdb.testing.keyword_extractor import KEYWORD_EXTRACTOR
from memdb.testing.knowledge_graph import KNOWLEDGE_GRAPH
from memdb.testing.knowledge_store import KNOWLEDGE_STORE
from memdb.testing.memory_store import MEMORY_STORE
from memdb.testing.scripted_model import ModelCall, ScriptedModel
from memdb.testing.suite import Case, Report, Skipped, check, name_of

__all__ = [
    "KEYWORD_EXTRACTOR",
    "KNOWLEDGE_GRAPH",
    "KNOWLEDGE_STORE",
    "MEMORY_STORE",
    "Case",
    "FrozenClock",
    "HashingEmbedder",
    "ModelCall",
    "Report",
    "ScriptedModel",
    "Skipped",
    "check",
    "name_of",
]
