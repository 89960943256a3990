"""What hypothesis makes up: the texts, ids, JSON values, items, pages and queries that memdb must take."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from memdb import GraphEntity, KnowledgePage, MemoryItem

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
SAME_EVERY_TIME = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=SLOW_IS_FINE, print_blob=False
)

CHARS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
WORDS = (
    "the", "quick", "running", "Runs", "naïve", "Straße", "ﬁle", "v1.2.3", "state_graph", "StateGraph", "don't", "C++",
    "部署方案", "日本語テスト", "カタカナ", "한국어를", "สวัสดีครับ", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာ", "नमस्ते",
    "שָׁלוֹם", "مُحَمَّد", "Việt", "🔥", "👩‍👩‍👧", "x²", "½", "1", "2", "3", "42", "ＦＵＬＬ", "İstanbul", "e-mail",
    "a@b.c", "src/core.py",
)  # fmt: skip
OPERATORS = (
    '"', "'", "AND", "OR", "NOT", "NEAR(", "NEAR", "(", ")", "*", "^", "+", "-", ":", "content:", "{title body}:",
    "a:b", "\\", "%", "_", ";", "--", "/*", "\x00", "\ud800", "\ufeff", "\u200b", "$.x",
    "?1", ":user_id", '""', '"" ""',
)  # fmt: skip

words = st.sampled_from(WORDS)
plain = st.text(CHARS, max_size=60)
prose = st.lists(words | st.text(CHARS, max_size=8), max_size=12).map(" ".join)
texts = plain | prose
_telling_ids = st.sampled_from(["a", "A", "a_b", "a/b", "..", "%", "'", "é", "e\u0301"])
ids = st.text(CHARS, min_size=1, max_size=30) | _telling_ids
instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))

_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_leaves = st.none() | st.booleans() | _numbers | plain
json_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain, inner, max_size=4), max_leaves=12
)

items = st.builds(
    MemoryItem, id=ids, content=texts, metadata=json_values, created_at=st.none() | instants, expires_at=st.none()
)
pages = st.builds(
    KnowledgePage,
    id=ids,
    title=texts,
    summary=texts,
    content=texts,
    tags=st.lists(plain, max_size=5),
    references=st.lists(ids, max_size=5),
    category=ids,
    keywords=st.lists(plain.filter(str.strip), max_size=5),
    created_at=st.none() | instants,
)

_names = st.text(CHARS, min_size=1, max_size=60).filter(str.strip)
entities = st.builds(
    GraphEntity,
    id=ids,
    name=_names,
    entity_type=_names,
    description=texts,
    tags=st.lists(plain, max_size=5),
    created_at=st.none() | instants,
)
weights = st.floats(0, 1)

any_text = st.text(st.characters(), max_size=40)  # NUL and lone surrogates too: what a person may paste
_pieces = words | st.sampled_from(OPERATORS) | any_text
queries = (
    any_text
    | st.lists(_pieces, max_size=10).map(" ".join)
    | st.lists(_pieces, max_size=6).map("".join)
    | st.lists(_pieces, min_size=1, max_size=5).map(lambda parts: f'"{" ".join(parts)}" {parts[0]}')
)
