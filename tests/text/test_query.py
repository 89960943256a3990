"""Any string is a query."""

from __future__ import annotations

import pytest

from memdb.text.query import MAX_PHRASE_WORDS, Term, beginning, parse


def matches(text: str) -> list[str]:
    return [term.match() for term in parse(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did Caroline go to the LGBTQ+ group?", ['"caroline"', '"go"', '"lgbtq"', '"group"']),
        ("what is the", ['"what"', '"is"', '"the"']),  # only stop words: better than nothing
        ("don't", ['"don"', '"t"']),
        ("Caroline's dog", ['"caroline"', '"dog"']),
        ("a OR", ['"a"', '"or"']),
        ("NEAR(cat dog)", ['"near"', '"cat"', '"near cat"', '"dog"']),
        ("foo:bar", ['"foo"', '"bar"', '"foo bar"']),
        ("StateGraph", ['"stategraph"', '"state graph"']),
        ("state_graph", ['"state"', '"graph"', '"state graph"']),
        ("v1.2.3", ['"v1"', '"2"', '"3"', '"v1 2 3"']),
        ("部署方案", ['"部署"', '"署方"', '"方案"']),
        ("部", ['"部" *']),
        ("用SQLite存储", ['"用" *', '"sqlite"', '"存储"']),
        ('"exact words" loose', ['"exact words"', '"loose"']),
        ('"部署方案"', ['"部署 署方 方案"']),
        ('"寿司食べ"', ['"寿司 司食 食 べ" *']),
        ('"one', ['"one"']),
        ("*", []),
        ('"', []),
        ("🔥 ❤️", []),
        ("\0\ud83d", []),
        ("", []),
    ],
)
def test_terms_of_a_query(text, expected):
    assert matches(text) == expected


def test_a_repeated_word_keeps_its_number():
    assert parse("tea tea milk") == {Term("tea"): 2, Term("milk"): 1}


def test_a_phrase_is_bounded():
    (term,) = parse('"' + "word " * 1000 + '"')
    assert len(term.text.split()) == MAX_PHRASE_WORDS


def test_a_long_chain_is_no_name():
    assert not any(term.phrase for term in parse(",".join(f"w{n}" for n in range(50))))


def test_the_beginning_of_a_word():
    assert beginning("Lang") == Term("lang", prefix=True)
    assert beginning("state gr") == Term("state gr", phrase=True, prefix=True)
    assert beginning("状态") == Term("状态")
    assert beginning("?") is None
