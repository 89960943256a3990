"""How a conversation is configured: what is refused, and with which words."""

from __future__ import annotations

import pytest

import memdb
from memdb import InvalidInput
from memdb.layers.window import CompactConfig, ConversationMemoryConfig
from tests.layers.test_window import window


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"strategy": "sliding_window"}, "ConversationMemoryConfig: max_turns or max_items must be given"),
        ({"strategy": "round"}, "ConversationMemoryConfig.strategy: .*one of sliding_window, full"),
        ({"max_turns": 0}, "ConversationMemoryConfig.max_turns: it must be 1 or more, not 0"),
        ({"max_turns": True}, "ConversationMemoryConfig.max_turns: it must be a whole number"),
        ({"max_items": -3}, "ConversationMemoryConfig.max_items: it must be 1 or more"),
        ({"max_items": 2.0}, "ConversationMemoryConfig.max_items: it must be a whole number"),
        ({"max_items": "5"}, "ConversationMemoryConfig.max_items: it must be a whole number"),
        ({"max_items": 2**63}, "ConversationMemoryConfig.max_items: it must be a whole number"),
        ({"max_messages": 5}, "ConversationMemoryConfig has no field max_messages"),
        ({"compact": 5}, "ConversationMemoryConfig.compact"),
    ],
)
def test_a_bad_configuration_gets_one_sentence_that_names_the_field(fields, complaint):
    with pytest.raises(InvalidInput, match=complaint) as caught:
        ConversationMemoryConfig(**fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ((0, 0, 1), "CompactConfig.context_window: it must be 1 or more"),
        ((True, 0, 1), "CompactConfig.context_window: it must be a whole number"),
        ((100, -1, 1), "CompactConfig.reserved_tokens: it must be 0 or more"),
        ((100, False, 1), "CompactConfig.reserved_tokens: it must be a whole number"),
        ((100, 100, 1), "CompactConfig.reserved_tokens: 100 of 100 tokens leave no room"),
        ((100, 10, 0), "CompactConfig.keep_recent: it must be 1 or more"),
        ((100, 10, None), "CompactConfig.keep_recent"),
    ],
)
def test_a_bad_compaction_gets_one_sentence_that_names_the_field(fields, complaint):
    names = ("context_window", "reserved_tokens", "keep_recent")
    with pytest.raises(InvalidInput, match=complaint):
        CompactConfig(**dict(zip(names, fields, strict=True)))


def test_configurations_are_values():
    assert ConversationMemoryConfig() == ConversationMemoryConfig(strategy="full")
    assert window(max_items=3) == ConversationMemoryConfig(strategy="sliding_window", max_items=3)
    assert len({window(max_items=3), window(max_items=3), window(max_turns=3)}) == 2
    with pytest.raises(InvalidInput, match="ConversationMemoryConfig"):
        memdb.ConversationMemory.configure(object(), None)
    with pytest.raises(ValueError, match="frozen"):
        window(max_items=3).max_items = 4
