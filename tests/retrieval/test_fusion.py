"""Fusing two rankings: the ends of the weight, empty lists, ties, and what a record may gain or lose."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdb.retrieval.meaning.fusion import POOL, Background, Ranking, background, fuse

LEXICAL = [(1, 20.0), (2, 6.0), (3, 5.0), (4, 4.0), (5, 0.5)]
SEMANTIC = [(4, 0.8), (6, 0.5), (2, 0.45), (7, 0.4), (1, 0.35), (8, 0.1)]


def order(ranking: Ranking) -> list[int]:
    return [number for number, _ in ranking]


@st.composite
def rankings(draw: st.DrawFn, most: float) -> Ranking:
    """A ranking as a search returns it: no record twice, best first, ties by id."""
    scores = st.floats(0 if most > 1 else -1, most, allow_nan=False, width=32)
    found = draw(st.dictionaries(st.integers(1, 40), scores, max_size=30))
    return sorted(found.items(), key=lambda hit: (-hit[1], hit[0]))


lexical_rankings, semantic_rankings = rankings(50.0), rankings(1.0)
weights = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


def test_what_both_lists_hold_comes_before_what_one_of_them_holds_as_far_down() -> None:
    lexical = [(1, 9.0), (2, 8.0), (3, 1.0)]
    semantic = [(4, 0.9), (2, 0.8), (5, 0.1)]
    assert order(fuse(lexical, semantic, limit=3))[0] == 2


def test_a_list_in_which_one_record_stands_out_counts_more_than_one_in_which_none_does() -> None:
    sure = [(1, 30.0), *((number, 1.0 - number / 1000) for number in range(2, 40))]
    guessing = [(number, 0.5 - number / 1000) for number in range(100, 140)]
    assert order(fuse(sure, guessing, limit=1)) == [1]
    vague = [(number, 10 - number / 1000) for number in range(1, 40)]
    found = [(100, 0.9), *((number, 0.1 - number / 10_000) for number in range(101, 140))]
    assert order(fuse(vague, found, limit=1)) == [100]


def test_cosines_are_held_against_those_of_the_whole_scope() -> None:
    lexical = [(1, 5.0), (2, 4.0), (3, 1.0)]
    semantic = [(4, 0.60), (5, 0.59), (6, 0.58)]
    far_above = Background(10_000, 0.1, 0.05)
    as_all_others = Background(10_000, 0.58, 0.05)
    assert order(fuse(lexical, semantic, among=far_above, limit=9))[-1] != 6
    assert set(order(fuse(lexical, semantic, among=as_all_others, limit=9))[-2:]) == {5, 6}


@pytest.mark.parametrize(("weight", "expected"), [(1.0, LEXICAL), (0.0, SEMANTIC)])
def test_a_weight_of_one_or_none_is_one_list_alone(weight: float, expected: Ranking) -> None:
    assert order(fuse(LEXICAL, SEMANTIC, bm25_weight=weight, limit=20)) == order(expected)


@pytest.mark.parametrize("weight", [0.01, 0.5, 0.99])
def test_where_one_list_is_empty_the_other_keeps_its_order(weight: float) -> None:
    assert order(fuse(LEXICAL, [], bm25_weight=weight, limit=20)) == order(LEXICAL)
    assert order(fuse([], SEMANTIC, bm25_weight=weight, limit=20)) == order(SEMANTIC)
    assert fuse([], [], bm25_weight=weight, limit=20) == []


def test_a_list_of_no_weight_is_left_out_even_where_the_other_is_empty() -> None:
    assert fuse([], SEMANTIC, bm25_weight=1.0, limit=20) == fuse(LEXICAL, [], bm25_weight=0.0, limit=20) == []


def test_ties_stand_in_the_order_of_their_ids() -> None:
    assert order(fuse([(9, 3.0)], [(2, 3.0)], among=Background(0, 0.0, 0.0), limit=20)) == [2, 9]


@pytest.mark.parametrize("score", [0.0, 0.1, 0.3, 7.0])
def test_scores_that_are_all_the_same_leave_reciprocal_rank_fusion(score: float) -> None:
    lexical, semantic = [(number, score) for number in (1, 2, 3)], [(number, score) for number in (3, 4, 5)]
    expected = sorted({1: 1 / 61, 2: 1 / 62, 3: 1 / 63 + 1 / 61, 4: 1 / 62, 5: 1 / 63}.items(), key=lambda hit: -hit[1])
    found = fuse(lexical, semantic, limit=20)
    assert order(found) == order(expected)
    assert [fused for _, fused in found] == pytest.approx(
        [worth * found[0][1] / expected[0][1] for _, worth in expected]
    )


@pytest.mark.parametrize("limit", [0, 1, 3, 100])
def test_the_limit_cuts_and_changes_nothing_else(limit: int) -> None:
    assert fuse(LEXICAL, SEMANTIC, limit=limit) == fuse(LEXICAL, SEMANTIC, limit=1000)[:limit]


def test_one_record_alone() -> None:
    [(number, score)] = fuse([(7, 2.5)], [(7, 0.3)], limit=10)
    assert number == 7
    assert 0 < score < math.inf


def test_a_longer_list_changes_nothing_for_those_that_stood_in_the_shorter_one() -> None:
    lexical = [(number, 1000.0 / number) for number in range(1, 501)]
    semantic = [(number, 1.9 - number / 1000) for number in range(1000, 1200)]
    among = Background(5000, 0.2, 0.1)
    short = fuse(lexical[:POOL], semantic, among=among, limit=10)
    assert fuse(lexical, semantic, among=among, limit=10) == short


def test_background_is_of_all_scores() -> None:
    assert background([]) == Background(0, 0.0, 0.0)
    assert background([1.0, 3.0]) == Background(2, 2.0, 1.0)


@given(lexical_rankings, semantic_rankings, weights)
def test_every_record_once_best_first_with_a_score(lexical: Ranking, semantic: Ranking, weight: float) -> None:
    found = fuse(lexical, semantic, bm25_weight=weight, limit=100)
    wanted = {
        number for list_weight, one in ((weight, lexical), (1 - weight, semantic)) if list_weight for number, _ in one
    }
    assert set(order(found)) == wanted
    assert len(order(found)) == len(wanted)
    assert all(0 < score < math.inf for _, score in found)
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))


@given(lexical_rankings, semantic_rankings, weights)
def test_a_record_that_is_better_in_both_lists_is_better_fused(
    lexical: Ranking, semantic: Ranking, weight: float
) -> None:
    found = order(fuse(lexical, semantic, bm25_weight=weight, limit=100))
    both = set(order(lexical)) & set(order(semantic))
    for one, other in itertools.permutations(sorted(both), 2):
        if all(order(ranking).index(one) < order(ranking).index(other) for ranking in (lexical, semantic)):
            assert found.index(one) < found.index(other)


@given(lexical_rankings, semantic_rankings, st.tuples(weights, weights))
def test_more_weight_for_words_never_brings_what_only_the_vectors_found_before_what_only_words_found(
    lexical: Ranking, semantic: Ranking, pair: tuple[float, float]
) -> None:
    less, more = sorted(pair)
    words_only = set(order(lexical)) - set(order(semantic))
    vectors_only = set(order(semantic)) - set(order(lexical))
    before = order(fuse(lexical, semantic, bm25_weight=less, limit=100))
    after = order(fuse(lexical, semantic, bm25_weight=more, limit=100))
    for word, vector in itertools.product(
        words_only & set(before) & set(after), vectors_only & set(before) & set(after)
    ):
        if before.index(word) < before.index(vector):
            assert after.index(word) < after.index(vector)


@given(lexical_rankings, semantic_rankings, st.floats(0.001, 1000))
def test_the_scale_of_scores_does_not_count(lexical: Ranking, semantic: Ranking, scale: float) -> None:
    scaled = [(number, score * scale) for number, score in lexical]
    found = dict(fuse(lexical, semantic, limit=100))
    again = dict(fuse(scaled, semantic, limit=100))
    assert again == pytest.approx(found, rel=1e-3, abs=1e-6)
