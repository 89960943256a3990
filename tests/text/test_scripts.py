"""The text that the index is given."""

from __future__ import annotations

import sqlite3

import pytest

from memdb.storage.schema import TOKENIZER
from memdb.text.scripts import bigrams, cut, fold, tokens, twin


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, “quoted” and café…", None),  # FTS5 does these well itself
        ("ДОМ дом", None),
        ("नमस्ते दुनिया", None),
        ("❤️ love", None),
        ("Foo™ bar", None),
        ("部署方案很", "部署 署方 方案 案很 很"),
        ("部", "部"),
        ("用SQLite存储", "用 sqlite 存储 储"),
        ("寿司食べる", "寿司 司食 食 べる る"),
        ("서울에서 만나", "서울 울에 에서 서 만나 나"),
        ("สวัสดี", "สว วั ัส สด ดี ี"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("Straße", "strasse"),
        ("שָׁלוֹם", "שלום"),
        ("كِتَابٌ", "كتاب"),
    ],
)
def test_a_twin_is_made_where_fts5_needs_one(text, expected):
    assert twin(text) == expected


def test_bigrams_of_a_run():
    assert bigrams("abcd") == ["ab", "bc", "cd"]
    assert bigrams("a") == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "It's 5 o'clock: v1.2.3!",
        "नमस्ते दुनिया",
        "שלום עולם",
        "naïve café",
        "x² ½ ④",
        "a_b-c/d",
        "ελληνικά ΣΊΣΥΦΟΣ",
        "e\u0301t\u00e9",
    ],
)
def test_words_are_cut_as_the_tokenizer_cuts_them(text):
    connection = sqlite3.connect(":memory:")
    tokenizer = TOKENIZER.removeprefix("porter ")
    connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(x, tokenize='{tokenizer}')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    connection.execute("INSERT INTO t VALUES (?)", (fold(text),))
    count = connection.execute("SELECT count(*) FROM v").fetchone()[0]
    assert len(tokens(fold(text))) == count


def test_cutting_leaves_spaced_scripts_alone():
    assert cut("hello world").split() == ["hello", "world"]
