"""What stands in a Markdown file, as a page."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from memdb import InvalidInput, KnowledgePage
from memdb.layers.models import MAX_REFERENCES
from memdb.markdown.links import Link
from memdb.markdown.note import Note, id_in, parse, render
from memdb.text.front import MAX_FRONT_BYTES
from memdb.text.headline import MAX_SUMMARY_CHARS


def note(text: str | bytes, path: str = "folder/a note.md", category: str = "knowledge") -> Note:
    return parse(text if isinstance(text, bytes) else text.encode(), path, category)


def page(text: str | bytes, **where: str) -> KnowledgePage:
    return note(text, **where).page


# -- front matter -----------------------------------------------------------------------------------------------------


def test_all_fields_of_the_front_matter():
    got = page(
        "---\nid: my id\ntitle: T\nsummary: S\ncategory: work\ntags: [One Tag, two]\nkeywords: [k]\n"
        "references: [x, y]\ncreated_at: 2024-05-06T07:08:09+02:00\naliases: [left alone]\nother: {a: 1}\n---\n# H\n"
    )
    assert (got.id, got.title, got.summary, got.category) == ("my id", "T", "S", "work")
    assert (got.tags, got.keywords, got.content) == (["one-tag", "two"], ["k"], "# H\n")
    assert got.created_at == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)


def test_values_are_the_text_that_stands_there():
    got = page("---\nid: 007\ntitle: 1_000\nsummary: yes\ntags: [no, 1.10, 2024-01-01, null, 0x1F]\n---\n")
    assert (got.id, got.title, got.summary) == ("007", "1_000", "yes")
    assert got.tags == ["no", "1.10", "2024-01-01", "0x1f"]


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: one two", ["one", "two"]),
        ("tags: one two, three", ["one-two", "three"]),
        ("tags: '#one #two'", ["one", "two"]),
        ("tags:", []),
        ("tags: []", []),
        ("tags:\n  - a\n  -\n  - b", ["a", "b"]),
        ("tags: ~", []),
        ("tags: [a, A, ' a ']", ["a"]),
    ],
)
def test_tags_as_people_write_them(line, tags):
    assert page(f"---\n{line}\n---\n").tags == tags


def test_empty_values_are_none_given():
    got = page("---\nid:\ntitle: ~\ncategory: null\ntags:\ncreated_at:\n---\n# Heading\n\nText.\n", path="n.md")
    assert (got.id, got.title, got.summary, got.category) == ("knowledge/n.md", "Heading", "Text.", "knowledge")
    assert (got.created_at, got.tags) == (None, [])
    assert page("---\ntitle: ''\nsummary: ''\n---\n# Heading\n\nText.\n").title == ""


def test_the_category_of_the_note_stands_in_its_id():
    assert page("---\ncategory: work\n---\n", path="x/n.md").id == "work/x/n.md"
    assert page("", path="x/n.md", category="home").id == "home/x/n.md"


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nA horizontal rule above.\n\n---\nMore.\n",
        "---\nAnd one alone",
        "---\n",
        "---",
        "----\nid: x\n----\n",
        "--- \nid x\n---\n",
        "---\n- a list\n---\n",
        " ---\nid: x\n---\n",
        "\n---\nid: x\n---\n",
        "---\n# a comment\n---\nText\n",
    ],
)
def test_what_is_no_front_matter_is_content(text):
    got = page(text, path="n.md")
    assert (got.content, got.id) == (text, "knowledge/n.md")


def test_what_follows_the_front_matter_is_the_content_to_the_letter():
    for body in ("", "\n", "\n\n  x  \n\n", "---\n", "---\na: b\n---\n", "\tx", "x\r\n", "\u2028", "\ufeff"):
        assert page(f"---\nid: x\n---\n{body}").content == body
        assert page(f"---  \r\nid: x\r\n---\t\r\n{body}").content == body
    assert page("---\nid: x\n---").content == ""
    assert (page("---\n---\nText").content, page("---\n\n---\nText").content) == ("Text", "Text")


@pytest.mark.parametrize(
    "front_matter",
    [
        "id: [x",
        "id: 'x",
        "a: b: c",
        "a:\t- b",
        "id: *nowhere",
        "? [a]\n: b",
        'id: "\\ud800"',
        "a: \x07",
        "a: &a [*a]",
        "<<: &a {<<: *a}",
        "[" * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "{a: " * 100_000,
        "a: " + "[" * 900 + "]" * 900,
        "a: " + "x" * MAX_FRONT_BYTES,
    ],
)
def test_broken_front_matter_is_told(front_matter):
    with pytest.raises(InvalidInput, match="front matter") as told:
        note(f"---\n{front_matter}\n---\nText\n")
    assert len(str(told.value)) < 300
    assert "\n" not in str(told.value)


def test_the_line_of_an_error_is_that_of_the_file():
    with pytest.raises(InvalidInput, match="in line 4"):
        note("---\nid: x\ntitle: y\nsummary: a: b\n---\n")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ("id: [x]", "id"),
        ("title: {a: b}", "title"),
        ("tags: {a: b}", "tags"),
        ("tags: [[a]]", "tags"),
        ("references: [x, {a: b}]", "references"),
        ("references: ['']", "must not be empty"),
        (f"references: [{'x' * 1001}]", "1,001 characters"),
        (f"id: {'x' * 1001}", "1,001 characters"),
        ('title: "a\\0b"', "NUL"),
        ("tags: [" + ",".join(f"t{n}" for n in range(65)) + "]", "65 entries"),
        (f"references: [{','.join(map(str, range(MAX_REFERENCES + 1)))}]", "references"),
    ],
)
def test_front_matter_that_no_page_can_have_is_told(fields, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        note(f"---\n{fields}\n---\n")


def test_a_yaml_bomb_does_nothing():
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefghijklm", "bcdefghijklmn", strict=True)]
    began = time.perf_counter()
    assert page("\n".join(["---", *lines, "---", "Text"])).content == "Text"
    with pytest.raises(InvalidInput, match="tags"):
        note("\n".join(["---", *lines, "tags: *n", "---"]))
    assert time.perf_counter() - began < 2


def test_nothing_of_yaml_is_carried_out():
    with pytest.raises(InvalidInput, match="title"):
        note("---\ntitle: !!python/object/apply:os.getcwd []\n---\n# H\n")
    assert page("---\nid: !!int x\n---\n").id == "x"


@pytest.mark.parametrize("moment", ["2024-05-06", "20240506", "2024-05-06 00:00", "2024-05-06T00:00Z"])
def test_moments_without_a_zone_are_utc(moment):
    assert page(f"---\ncreated_at: {moment}\n---\n").created_at == datetime(2024, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize("moment", ["yesterday", "2024-13-01", "1", "99999-01-01"])
def test_a_moment_that_is_none_is_passed_over(moment):
    assert page(f"---\ncreated_at: {moment}\n---\n").created_at is None


# -- bytes ------------------------------------------------------------------------------------------------------------


def test_encodings():
    assert page(b"\xef\xbb\xbf---\nid: x\n---\n# \xc3\xa9").title == "é"
    for raw, complaint in (
        (b"\xff\xfeh\0i\0", "UTF-16"),
        (b"\xfe\xff\0h\0i", "UTF-16"),
        (b"h\0i\0", "NUL"),
        (b"caf\xe9", r"not UTF-8 \(byte 4\)"),
        (b"\xed\xa0\x80", "not UTF-8"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            note(raw)
        assert id_in(raw) == ""


def test_an_empty_file_is_a_page():
    for raw in (b"", b"\xef\xbb\xbf", b"\n", b"   \n\n"):
        got = page(raw, path="x/y/Some Name.MD")
        assert (got.title, got.summary, got.id) == ("Some Name", "", "knowledge/x/y/Some Name.MD")


def test_the_id_that_a_note_names():
    assert id_in(b"\xef\xbb\xbf---\nid: 07\n---\n") == "07"
    for raw in (b"", b"# x", b"---\nid: [a]\n---\n", b"---\n: :\n---\n", b"---\ntitle: x\n---\n"):
        assert id_in(raw) == ""


# -- titles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# A title", "A title"),
        ("   #  A title  ##  \n", "A title"),
        ("# A title\r\n\r\nText", "A title"),
        ("# C#", "C#"),
        ("# F# and C# #", "F# and C#"),
        ("# #", "a note"),
        ("# ##", "a note"),
        ("#No heading", "a note"),
        ("    # code\n", "a note"),
        ("\\# no heading", "a note"),
        ("## Second\n\n# First\n\n# Third", "First"),
        ("Title\n=====\n\nText", "Title"),
        ("Title\r\n===\r\n", "Title"),
        ("C#\n==\n", "C#"),
        ("Second rank\n---\n\nTitle\n=\n", "Title"),
        ("```\n# code\n```\n# Title", "Title"),
        ("~~~ text\n# code\n~~~~\n# Title", "Title"),
        ("- ```\n  # code\n\n  # code\n  ```\n\n# Title", "Title"),
        ("```\n# never closed", "a note"),
        ("<!-- # no\n# no -->\n# Title", "Title"),
        ("# <!-- no --> Title <!-- no -->", "Title"),
        ("# `code` first", "code first"),
        ("# `only code`", "only code"),
        ("# The `__init__.py` of *all*", "The __init__.py of all"),
        ("# ``a `tick` b``", "a tick b"),
        ("# **Bold** and _em_ in snake_case_name, 2 * 3", "Bold and em in snake_case_name, 2 * 3"),
        ('# [A link](to.md "t") and [[wiki|label]] and [[plain]]', "A link and label and plain"),
        ("# ![logo](logo.png) Name", "logo Name"),
        ("# [![badge](a.png)](b.md) Name", "badge Name"),
        ("# [a](b(c).md) d", "a d"),
        ("# 1. Introduction", "1. Introduction"),
        ("# 2024) A year", "2024) A year"),
        ("# Tab\tand   blanks", "Tab and blanks"),
        ("#\tTab", "Tab"),
    ],
)
def test_titles(text, title):
    assert page(text).title == title


def test_a_long_title_is_cut():
    assert len(page("# " + "x" * 20_000).title) == 10_000
    assert len(page(f"---\ntitle: {'x' * 20_000}\n---\n").title) == 10_000


# -- summaries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("# T\n\nFirst.\n\nSecond.", "First."),
        ("# T\nFirst\nline.\n\nSecond.", "First line."),
        ("# T\r\n\r\nFirst\r\nline.\r\n\r\nSecond.", "First line."),
        ("Title\r\n=====\r\n\r\nText.\r\n", "Text."),
        ("Title\n=====\nText.\n", "Text."),
        ("Rank two\n---\n\nText.\n", "Text."),
        ("# T\n## U\n\n***\n\n- - -\n\nText.", "Text."),
        ("# T\n\n- one\n- [ ] two\n* [x] three\n", "one two three"),
        ("# T\n\n1. one\n2) two\n", "one two"),
        ("# T\n\nIntro:\n- one\n", "Intro: one"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nText.", "Text."),
        ("a | b\n--- | ---\n1 | 2\n\nText.", "Text."),
        ("> quoted\n\nText.", "Text."),
        ("<!-- a\n\ncomment -->\n\nText.", "Text."),
        ("Text <!-- no\nno --> more.", "Text more."),
        ("<!-- no --> Text", "Text"),
        ("![image](a.png)\n\nText.", "Text."),
        ("![[embedded]]\n\nText.", "Text."),
        ("[![CI](a.svg)](b) [![PyPI](c.svg)](d)\n\nText.", "Text."),
        ("```\ncode\n```\n\nText.", "Text."),
        ("    code\n\n\tcode\n\nText.", "Text."),
        ("[ref]: x.md\n[^1]: foot\n\nText.", "Text."),
        ("Use `a  b` and ``c`d``.", "Use a  b and cd."),
        ("`only code`", "only code"),
        ("See [this](x.md), [[that|it]] and *more*.", "See this, it and more."),
        ("# T", ""),
        ("", ""),
    ],
)
def test_summaries(text, summary):
    assert page(text).summary == summary


def test_a_long_summary_is_cut_at_a_word():
    got = page("# T\n\n" + "word " * 300).summary
    assert got.endswith("word…")
    assert MAX_SUMMARY_CHARS - 6 < len(got) <= MAX_SUMMARY_CHARS
    assert len(page("x" * 5_000).summary) == MAX_SUMMARY_CHARS


HOSTILE = (
    "[",
    "]",
    "`",
    "` ",
    "``` ",
    "<!--",
    "![[",
    "](",
    "[a](",
    "[[a|",
    "[x](a(",
    "*",
    "_a",
    "# ",
    "#",
    " ",
    "> ",
    "- ",
    "|",
    "|-",
    "\n",
    "\n=",
    "a\n=\n",
    "\\",
    "\\`",
    "-->",
    "a|b\n",
    "\r",
    "~~~\n",
    "```\n",
    "1. ",
)


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("head", ["", "# ", "x "])
def test_half_a_megabyte_of_anything_takes_no_more_than_a_moment(piece, head):
    began = time.perf_counter()
    note((head + piece * (500_000 // len(piece))).encode())
    assert time.perf_counter() - began < 2


# -- links of a note and writing -------------------------------------------------------------------------------------


def test_references_of_the_front_matter_stand_for_the_links():
    assert note("---\nreferences: [b, a, b]\n---\n[[c]]").links == (
        Link("page", "b"),
        Link("page", "a"),
        Link("page", "b"),
    )
    assert note("---\nreferences: []\n---\n[[c]]").links == ()
    assert note("---\nreferences: one, id\n---\n[[c]]").links == (Link("page", "one, id"),)
    assert note("---\nid: x\n---\n[[c]]").links == (Link("wiki", "c"),)


def test_a_note_of_many_links_keeps_as_many_as_a_page_may_have():
    assert len(note(" ".join(f"[[n{n}]]" for n in range(2 * MAX_REFERENCES))).links) == MAX_REFERENCES


def test_keywords_by_rule_are_not_written():
    by_rule = KnowledgePage(id="x", title="Sourdough bread", content="The sourdough starter", keywords=["sourdough"])
    from memdb.text.keywords import extract_keywords

    by_rule.keywords = extract_keywords(by_rule.title, by_rule.summary, by_rule.content)
    assert "keywords" not in render(by_rule)
    assert "keywords: [own]" in render(by_rule.model_copy(update={"keywords": ["own"]}))


def test_a_page_whose_front_matter_could_not_be_read_again_is_not_written():
    with pytest.raises(InvalidInput, match="front matter"):
        render(KnowledgePage(id="x", title="t", summary="s" * MAX_FRONT_BYTES))
