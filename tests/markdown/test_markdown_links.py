"""Which links a note holds, and which note of the folder each leads to."""

from __future__ import annotations

import time

import pytest

from memdb.markdown.links import PATH, WIKI, Link, find_links, prose
from memdb.markdown.resolve import Resolver, Target


def found(text: str) -> list[str]:
    """The targets, wiki links in double brackets."""
    return [f"[[{link.target}]]" if link.kind == WIKI else link.target for link in find_links(text)]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[[a]] and [[b|label]], [[c#part]], [[d#p|l]]", ["[[a]]", "[[b]]", "[[c]]", "[[d]]"]),
        ("[[ a b ]] [[a b]]", ["[[a b]]"]),
        ("| [[a\\|label]] |", ["[[a]]"]),
        ("[[#part]] [[|x]] [[]] [[ ]]", []),
        ("[[a\nb]]", []),
        ("![[picture.png]] ![[note]]", ["[[picture.png]]", "[[note]]"]),
        ("[[[a]]]", ["[[a]]"]),
        ("[x](a.md)", ["a.md"]),
        ("[x]( a.md )", ["a.md"]),
        ("[x](a.md 'title') [x](b.md \"t (t)\") [x](c.md (t))", ["a.md", "b.md", "c.md"]),
        ("[x](<with space.md>) [x](<b.md> 'title')", ["with space.md", "b.md"]),
        ("[x](with%20space.md) [x](%E4%B8%AD.md) [x](a%2Fb.md)", ["with space.md", "中.md", "a/b.md"]),
        ("[x](with space.md)", []),
        ("[x](a(b).md) [x](a\\(b.md)", ["a(b).md", "a(b.md"]),
        ("[x](../up.md) [x](./here.md) [x](/top.md)", ["../up.md", "./here.md", "/top.md"]),
        ("[x](a.md#part) [x](b.md?q=1) [x](#part) [x]()", ["a.md", "b.md"]),
        ("[x](https://a.b/c.md) [x](mailto:a@b) [x](//host/a.md) [x](file:a.md)", []),
        ("<https://a.b> https://c.d/e.md", []),
        ("![image](a.png)", []),
        ("[![image](a.png)](b.md)", ["b.md"]),
        ("[a [nested] text](b.md)", ["b.md"]),
        ("[x][ref]\n\n[ref]: a.md\n[other]: <b c.md> 'title'", ["a.md", "b c.md"]),
        ("[^1]: foot.md", []),
        ("- [ ] [x](a.md)\n- [x] [y](b.md)", ["a.md", "b.md"]),
        ("`[[a]]` ``[x](b.md) ` ``[[c]]", ["[[c]]"]),
        ("`one [[a]]\ntwo` [[b]]", ["[[b]]"]),
        ("`one [[a]]\n\ntwo` [[b]]", ["[[a]]", "[[b]]"]),
        ("`unclosed [[a]]", ["[[a]]"]),
        ("\\`[[a]]\\`", ["[[a]]"]),
        ("```\n[[a]]\n```\n[[b]]", ["[[b]]"]),
        ("````\n```\n[[a]]\n````\n[[b]]", ["[[b]]"]),
        ("~~~\n```\n[[a]]\n~~~\n[[b]]", ["[[b]]"]),
        ("```py title=[[a]]\n[[a]]\n```[[c]]\n```\r\n[[b]]", ["[[b]]"]),
        ("> ```\n> [[a]]\n> ```\n> [[b]]", ["[[b]]"]),
        ("- ```\n  [[a]]\n\n  [[a]]\n  ```\n- [[b]]", ["[[b]]"]),
        ("```\n[[a]]", []),
        ("``` `no fence` [[a]]", ["[[a]]"]),
        ("<!-- [[a]]\n\n[x](a.md) --> [[b]]", ["[[b]]"]),
        ("<!-- never closed [[a]]", ["[[a]]"]),
        ("`<!--` [[a]] `-->`", ["[[a]]"]),
        ("\\[[a]] \\[x](b.md) [\\[y\\]](c.md)", ["c.md"]),
        ("\\\\[[a]]", ["[[a]]"]),
        ("[[a`b`]] [x](`a`.md) [`code`](b.md)", ["b.md"]),
        ("[x](%00.md) [x](%ff.md)", []),
        ("[x](<\u3000a.md>) [x](<\u00a0a.md>)", ["\u3000a.md", "\u00a0a.md"]),
        ("[[a]] [[a]] [x](a) [x](a)", ["[[a]]", "a"]),
        ("[[" + "x" * 1000 + "]] [[" + "y" * 1001 + "]]", ["[[" + "x" * 1000 + "]]"]),
        ("no link at all", []),
        ("", []),
    ],
)
def test_links(text, links):
    assert found(text) == links
    assert found(text.replace("\r\n", "\n").replace("\n", "\r\n")) == links


def test_prose_keeps_every_character_in_its_place():
    text = "a `b` <!-- c\nd --> \\[e\n```\nf\n```\ng"
    assert prose(text) == "a \0\0\0       \n      \0\0e\n   \n \n   \ng"


HOSTILE = (
    "[",
    "]",
    "(",
    ")",
    "`",
    "` ",
    "`a``",
    "``` ",
    "\n```",
    "<!--",
    "<!-- ",
    "-->",
    "![[",
    "[[",
    "]]",
    "](",
    "](<",
    "](a ",
    '](a "',
    "](a '",
    "](a (",
    "](a(",
    "[a](b",
    "[a]: ",
    "\n[a]:",
    "\n[",
    "\\",
    "\\[",
    "%",
    "](%",
    "[[a|",
    "[[a]",
    "[[a#",
    "> ",
    "\n> ",
    "- ",
    "\n- ",
    "1. ",
    "~~~\n",
    "~",
    " ",
    "\n",
    "\t",
    "[[a]]",
    "[x](y)",
    "``\n\n",
    "`\n\n``",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_of_anything_takes_no_more_than_a_moment(piece):
    for text in (piece * (1_000_000 // len(piece)), "[[x]" + piece * (300_000 // len(piece)) + "](x"):
        began = time.perf_counter()
        find_links(text)
        assert time.perf_counter() - began < 3


# -- where they lead --------------------------------------------------------------------------------------------------


def resolver(*paths: str, **titles: str) -> Resolver:
    """A folder of notes: the id of each is its path, the title what titles say."""
    return Resolver([Target(path, path, titles.get(path.split(".")[0].replace("/", "_"), "")) for path in paths])


FOLDER = resolver(
    "top.md",
    "Other Note.md",
    "a/one.md",
    "a/two.md",
    "a/deep/one.md",
    "b/one.md",
    "b/x.markdown",
    "c/v1.2.md",
    "c/é.md",
    "d.md/inside.md",
    "名前.md",
    top="The Top",
    a_two="Second",
)


@pytest.mark.parametrize(
    ("target", "path", "id"),
    [
        ("one.md", "a/two.md", "a/one.md"),
        ("one", "a/two.md", "a/one.md"),
        ("./one.md", "a/two.md", "a/one.md"),
        ("../b/one.md", "a/two.md", "b/one.md"),
        ("../top.md", "a/two.md", "top.md"),
        ("../../top.md", "a/deep/one.md", "top.md"),
        ("../../../top.md", "a/deep/one.md", None),
        ("../x/../top.md", "a/two.md", "top.md"),
        ("/a/one.md", "b/one.md", "a/one.md"),
        ("/../top.md", "b/one.md", None),
        ("ONE.md", "a/two.md", "a/one.md"),
        ("x", "b/one.md", "b/x.markdown"),
        ("x.md", "b/one.md", "b/x.markdown"),
        ("other note.md", "top.md", "Other Note.md"),
        ("e\u0301.md", "c/v1.2.md", "c/é.md"),
        ("v1.2", "c/é.md", "c/v1.2.md"),
        ("名前.md", "top.md", "名前.md"),
        ("two.md", "top.md", None),
        ("a", "top.md", None),
        (".", "a/one.md", None),
        ("..", "a/deep/one.md", None),
        ("x/..", "a/one.md", None),
        ("/", "a/one.md", None),
        ("d.md/inside.md", "top.md", "d.md/inside.md"),
    ],
)
def test_paths_lead_from_the_note(target, path, id):
    assert FOLDER.resolve(Link(PATH, target), path) == id


@pytest.mark.parametrize(
    ("target", "path", "id"),
    [
        ("top", "a/one.md", "top.md"),
        ("TOP", "a/one.md", "top.md"),
        ("top.md", "a/one.md", "top.md"),
        ("two", "b/one.md", "a/two.md"),
        ("a/one", "b/one.md", "a/one.md"),
        ("deep/one", "b/one.md", "a/deep/one.md"),
        ("eep/one", "b/one.md", None),
        ("one", "a/two.md", "a/one.md"),
        ("one", "a/deep/one.md", "a/deep/one.md"),
        ("one", "b/x.markdown", "b/one.md"),
        ("one", "top.md", "a/one.md"),
        ("one", "c/é.md", "a/one.md"),
        ("The Top", "a/one.md", "top.md"),
        ("the top", "a/one.md", "top.md"),
        ("Second", "top.md", "a/two.md"),
        ("../top", "a/one.md", "top.md"),
        ("/top", "a/one.md", "top.md"),
        ("v1.2", "top.md", "c/v1.2.md"),
        ("v1", "top.md", None),
        ("nothing", "top.md", None),
        ("..", "a/deep/one.md", None),
        ("...and more", "top.md", None),
    ],
)
def test_wiki_links_find_their_note_anywhere(target, path, id):
    assert FOLDER.resolve(Link(WIKI, target), path) == id


def test_a_file_comes_before_a_title_and_the_exact_name_before_another():
    folder = resolver("x.md", "y.md", "z/Note.md", "z/note.md", y="x")
    assert folder.resolve(Link(WIKI, "x"), "y.md") == "x.md"
    assert folder.resolve(Link(PATH, "z/note.md"), "x.md") == "z/note.md"
    assert folder.resolve(Link(PATH, "z/Note.md"), "x.md") == "z/Note.md"
    assert folder.resolve(Link(PATH, "z/NOTE.md"), "x.md") == "z/Note.md"


def test_of_many_notes_of_one_name_or_title_the_nearest_is_found_quickly():
    paths = [f"{n % 100}/{n}/index.md" for n in range(10_000)]
    folder = Resolver([Target(path, path, "Same") for path in paths])
    began = time.perf_counter()
    for n, path in enumerate(paths):
        other = path.replace("index", "other")
        assert folder.resolve(Link(WIKI, "index"), other) == path
        assert folder.resolve(Link(WIKI, "same"), other) == path
        assert folder.resolve(Link(WIKI, f"{n}/index"), "top.md") == path
        assert folder.resolve(Link(WIKI, "index"), "55/x.md") == "55/1055/index.md"  # the first of those in its folder
    assert time.perf_counter() - began < 5
