"""The eviction policies of the agcore document (its section 4), as a user writes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, model_validator

from memdb.errors import InvalidInput
from memdb.layers.models import Model, whole_number
from memdb.layers.recall import RecallBasedConfig
from memdb.text.shown import shown

MAX_TTL_SECS = 100 * 366 * 86_400
MAX_ITEMS = 1_000_000_000
MAX_CHECK_INTERVAL = 1_000_000


TtlSecs = Annotated[int, whole_number("ttl_secs", 1, MAX_TTL_SECS)]
MaxItems = Annotated[int, whole_number("max_items", 1, MAX_ITEMS)]
CheckInterval = Annotated[int, whole_number("check_interval", 1, MAX_CHECK_INTERVAL)]


class _Policy(Model):
    model_config = ConfigDict(frozen=True)


class NoEviction(_Policy):
    """Nothing is thrown away."""


class Ttl(_Policy):
    """What is older than a time to live goes, with the next write; until then it is read as before.

    What must vanish on time has an `expires_at` (MemoryItem).

    Args:
        ttl_secs: seconds from its created_at.
    """

    ttl_secs: TtlSecs


class Capacity(_Policy):
    """The oldest go when there are too many: by created_at, ties in the order of their first saving.

    Args:
        max_items: how many stay, at least 1.
    """

    max_items: MaxItems


class RecallBased(RecallBasedConfig):
    """Those of the lowest value go when there are too many; see RecallStats.value, ties as for Capacity.

    What was never recalled counts its days from its created_at. With the default weights it is worth less than
    anything that was recalled: in a store that is full of recalled ones a new item goes with the very write that stores
    it, and the write does not tell. Recalled is what the retriever returned, or what `record_recall` was told.

    Args:
        max_items: how many stay, at least 1.
        recall_weight, score_weight, recency_weight: see RecallBasedConfig.
    """

    model_config = ConfigDict(frozen=True)

    max_items: MaxItems


class Hybrid(_Policy):
    """First Ttl, then Capacity or, where `recall` is given, RecallBased; what is None is not done.

    Args:
        ttl_secs: see Ttl.
        max_items: see Capacity.
        recall: the weights of the value by which the surplus goes; a RecallBased also says how many stay.
    """

    ttl_secs: TtlSecs | None = None
    max_items: MaxItems | None = None
    recall: RecallBased | RecallBasedConfig | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Hybrid:
        if self.recall is not None and self.most is None:
            raise InvalidInput("recall evicts what is beyond max_items; give max_items, too")
        if isinstance(self.recall, RecallBased) and self.most != self.recall.max_items:
            raise InvalidInput(f"max_items is {self.most} here and {self.recall.max_items} in recall; give it once")
        return self

    @property
    def most(self) -> int | None:
        """How many stay at most, if there is a bound."""
        if self.max_items is None and isinstance(self.recall, RecallBased):
            return self.recall.max_items
        return self.max_items


EvictionPolicy = NoEviction | Ttl | Capacity | RecallBased | Hybrid


def _policy(value: object) -> object:
    if value is None:
        return NoEviction()
    if not isinstance(value, EvictionPolicy):
        raise InvalidInput(
            "policy must be a NoEviction, Ttl, Capacity, RecallBased or Hybrid, such as Capacity(max_items=1000), "
            f"not {shown(value)}"
        )
    return value


class EvictionConfig(Model):
    """When a store throws away what (agcore document, section 4.2).

    Args:
        policy: one of NoEviction, Ttl, Capacity, RecallBased, Hybrid; None for NoEviction.
        check_interval: the check is made after every so many items written, by whichever handle. Between two checks a
            store may hold up to check_interval - 1 items more than its policy lets stay.
    """

    model_config = ConfigDict(frozen=True)

    policy: Annotated[EvictionPolicy, BeforeValidator(_policy)] = NoEviction()
    check_interval: CheckInterval = 1


NEVER = EvictionConfig()
