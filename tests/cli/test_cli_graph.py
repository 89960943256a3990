"""graph: add, show, related, tags; in every form, whatever names hold."""

from __future__ import annotations

import asyncio
import html
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

import memdb
from memdb import GraphEntity, GraphRelation
from memdb.cli.app import COMMANDS
from memdb.cli.demo import OF_THE_GRAPH
from memdb.cli.drawing import LABEL_CHARS
from tests.cli.command_line import Cli

HOSTILE = (
    'say "hi"',
    "back\\slash\\",
    "two\nlines\tand\\n",
    "[x](y){z}|<b>&amp;</b>",
    "#quot; #35; ; : %%{init: {}}%% `md`",
    "style a:#fff;",
    "end",
    '"]; n1 -> n1 [label="',
    "猫と犬 🐈 שלום",
    "\u202eturned\x1b[2J",
    "x" * 1_000,
    "-->|y|",
    "1. a list",
    "\\",
)
FORMS = "`memdb graph add FILE NAME` adds an entity"
DOT_NODE = re.compile(r'  (n\d+) \[label="((?:[^"\\]|\\.)*)"(?:, style="rounded,bold")?\];')
DOT_EDGE = re.compile(r'  (n\d+) -> (n\d+) \[label="((?:[^"\\]|\\.)*)", penwidth=\d\.\d\d\];')
MERMAID_LABEL = r'"((?:[\w .,()+/-]|[^\x00-\x9f]|#\d+;)+)"'
MERMAID_NODE = re.compile(rf"  (n\d+)(?:\[{MERMAID_LABEL}\]|\(\[{MERMAID_LABEL}\]\))", re.ASCII)
MERMAID_EDGE = re.compile(rf"  (n\d+) -->\|{MERMAID_LABEL}\| (n\d+)", re.ASCII)


def fill(path: Path, user: str, entities: list[GraphEntity], relations: list[GraphRelation]) -> None:
    async def put() -> None:
        async with memdb.open(path) as db:
            graph = db.memory(user).graph
            await graph.add_entities(entities)
            await graph.add_relations(relations)

    asyncio.run(put())


def relation(source: str, kind: str, target: str, weight: float = 1.0) -> GraphRelation:
    return GraphRelation(source_id=source, relation_type=kind, target_id=target, weight=weight)


@pytest.fixture
def drawn(path: Path) -> Path:
    """A file with a small graph of alice."""
    entities = [
        GraphEntity(id="sg", name="StateGraph", tags=["graph", "state-graph"], description="A graph\nof states."),
        GraphEntity(id="cp", name="Checkpoint", entity_type="class", tags=["graph"]),
        GraphEntity(id="cs", name="CheckpointSaver"),
        GraphEntity(id="lg", name="LangGraph"),
        GraphEntity(id="alone", name="Alone"),
    ]
    relations = [
        relation("cp", "part_of", "sg", 0.8),
        relation("sg", "part_of", "lg"),
        relation("cs", "writes", "cp", 0.5),
    ]
    fill(path, "alice", entities, relations)
    return path


def rows(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


# -- add --------------------------------------------------------------------------------------------------------------


def test_an_entity_is_added_and_the_file_is_made(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    done = cli("graph", "add", file, "State Graph")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("Added State Graph (concept")
    entity = cli("graph", "show", file, "State Graph", "--json").json["entity"]
    assert (entity["id"], entity["name"], entity["entity_type"]) == ("State Graph", "State Graph", "concept")
    assert "state-graph" in entity["tags"]
    assert cli("info", file, "--json").json["layers"][0]["user_id"] == "default"


def test_an_entity_with_all_that_is_said_of_it(cli: Cli, path: Path) -> None:
    said = ("--id", "e1", "--type", "class", "--description", "A graph.", "--tag", "Graph", "--tag", "state")
    assert cli("graph", "add", path, "StateGraph", *said, "--user", "bob").status == 0
    entity = cli("graph", "show", path, "e1", "--json").json["entity"]
    assert (entity["name"], entity["entity_type"], entity["description"]) == ("StateGraph", "class", "A graph.")
    assert (entity["tags"], entity["recalls"]) == (["graph", "state"], None)


def test_an_end_is_found_whatever_the_case_of_its_name(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "case.db"
    assert cli("graph", "add", file, "Ana").status == 0
    done = cli("graph", "add", file, "ana", "knows", "Bob")
    assert "'Bob' was not there" in done.complaint
    assert "'ana'" not in done.complaint
    assert "Ana -knows-> Bob" in done.out


def test_an_entity_that_is_there_is_refused(cli: Cli, drawn: Path) -> None:
    done = cli("graph", "add", drawn, "Another", "--id", "sg")
    assert done.status == 2
    assert "entity 'sg' exists already" in done.complaint


def test_a_relation_adds_the_ends_that_are_missing_and_says_so(cli: Cli, path: Path) -> None:
    done = cli("graph", "add", path, "Ana", "works_on", "tide service", "--weight", "0.8")
    assert done.status == 0
    assert done.out == "Added Ana -works_on-> tide service with the weight 0.8.\n"
    assert [line.split(" was ")[0] for line in done.err.splitlines()] == ["memdb: 'Ana'", "memdb: 'tide service'"]
    again = cli("graph", "add", path, "Ana", "works_on", "tide service", "--weight", "0.25")
    assert again.out == "Ana -works_on-> tide service was there: its weight is 0.25 now, before it was 0.8.\n"
    assert again.err == ""
    assert rows(cli("graph", "show", path).out)[1:] == [["Ana", "works_on", "tide service", "0.25"]]


def test_a_relation_takes_ids_and_names(cli: Cli, drawn: Path) -> None:
    assert cli("graph", "add", drawn, "cs", "extends", "LangGraph").err == ""
    assert ["CheckpointSaver (cs)", "extends", "LangGraph (lg)", "1.00"] in rows(cli("graph", "show", drawn).out)
    assert "'Check' was not there" in cli("graph", "add", drawn, "Check", "is", "sg").err  # a beginning will not do


def test_a_relation_that_is_refused_leaves_nothing(cli: Cli, path: Path) -> None:
    done = cli("graph", "add", path, "Ana", "is", "Ana")
    assert done.status == 2
    assert "both ends are 'Ana'" in done.complaint
    assert cli("graph", "show", path).status == 1


def test_a_name_of_several_entities_is_no_end_of_a_relation(cli: Cli, path: Path) -> None:
    fill(path, "alice", [GraphEntity(id=id, name="Teo") for id in ("t1", "t2")], [])
    done = cli("graph", "add", path, "Teo", "knows", "Ana")
    assert done.status == 2
    assert "'t1' (Teo), 't2' (Teo)" in done.complaint
    assert "several entities have the name 'Teo'" in (shown := cli("graph", "show", path, "Teo")).complaint
    assert shown.status == 1


@pytest.mark.parametrize("words", [["a", "b"], ["a", "b", "c", "d"]])
def test_two_words_or_four_are_told_both_forms(cli: Cli, path: Path, words: list[str]) -> None:
    done = cli("graph", "add", path, *words)
    assert done.status == 2
    assert FORMS in done.complaint
    assert "SOURCE RELATION TARGET" in done.complaint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "--weight", "0.5"], "an entity has no --weight"),
        (["a", "b", "c", "--tag", "t"], "a relation has no --tag"),
        (["a", "b", "c", "--id", "t"], "a relation has no --id"),
        (["a", "b", "c", "--weight", "2"], "--weight"),
        (["a", "b", "c", "--weight", "nan"], "--weight"),
        ([""], "empty"),
        ([" "], "empty"),
        (["a", " ", "c"], "empty"),
        (["x" * 1_001], "1,001 characters"),
    ],
)
def test_misuse_of_add(cli: Cli, path: Path, words: list[str], said: str) -> None:
    done = cli("graph", "add", path, *words)
    assert done.status == 2
    assert said in done.complaint
    assert cli("graph", "show", path).status == 1


def test_words_that_make_no_entity_make_no_file(cli: Cli, tmp_path: Path) -> None:
    assert cli("graph", "add", tmp_path / "new.db", " ").status == 2
    assert list(tmp_path.iterdir()) == []


# -- show -------------------------------------------------------------------------------------------------------------


def test_the_whole_graph_strongest_first_then_who_is_alone(cli: Cli, drawn: Path) -> None:
    done = cli("graph", "show", drawn)
    assert done.err == ""
    assert rows(done.out) == [
        ["source", "relation", "target", "weight"],
        ["StateGraph (sg)", "part_of", "LangGraph (lg)", "1.00"],
        ["Checkpoint (cp)", "part_of", "StateGraph (sg)", "0.80"],
        ["CheckpointSaver (cs)", "writes", "Checkpoint (cp)", "0.50"],
        ["Alone (alone)", "", "", ""],
    ]


@pytest.mark.parametrize(("limit", "lines", "more"), [(1, 1, True), (3, 3, True), (4, 4, False)])
def test_what_is_left_out_is_told(cli: Cli, drawn: Path, limit: int, lines: int, more: bool) -> None:
    done = cli("graph", "show", drawn, "--limit", limit)
    assert len(rows(done.out)) == 1 + lines
    assert bool(done.err) is more
    assert cli("graph", "show", drawn, "--limit", limit, "--json").json["more"] is more


@pytest.mark.parametrize(
    ("text", "id"), [("sg", "sg"), ("StateGraph", "sg"), ("state", "sg"), ("Checkpoint", "cp"), ("CHECKPOINT", "cp")]
)
def test_an_entity_by_id_name_or_beginning(cli: Cli, drawn: Path, text: str, id: str) -> None:
    assert cli("graph", "show", drawn, text, "--json").json["entity"]["id"] == id


def test_an_entity_with_its_relations(cli: Cli, drawn: Path) -> None:
    facts, description, table = cli("graph", "show", drawn, "StateGraph").out.split("\n\n")
    assert [line.split()[0] for line in facts.splitlines()] == ["name", "id", "type", "tags", "recalls", "updated"]
    assert description == "A graph\nof states."
    assert [row[1] for row in rows(table)] == ["relation", "part_of", "part_of"]
    further = cli("graph", "show", drawn, "StateGraph", "--depth", 2).out.split("\n\n")[2]
    assert [row[3] for row in rows(further)] == ["weight", "1.00", "0.80", "0.50"]
    assert "Alone" in cli("graph", "show", drawn, "alone").out


def test_an_entity_that_is_not_certain(cli: Cli, drawn: Path) -> None:
    done = cli("graph", "show", drawn, "Check")
    assert (done.status, done.out) == (1, "")
    assert done.complaint.endswith("'cp' (Checkpoint), 'cs' (CheckpointSaver)")
    near = cli("graph", "show", drawn, "states")
    assert near.status == 1
    assert near.complaint == "there is no entity 'states'; what comes near it: 'sg' (StateGraph)"
    assert cli("graph", "related", drawn, "zebra").complaint == "there is no entity 'zebra'"


def test_what_was_recalled_of_an_entity(cli: Cli, drawn: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(drawn)
    connection.execute(
        "INSERT INTO recall (record_id, recall_count, total_score, last_recall_at)"
        " SELECT id, 4, 2.0, '2026-01-02T03:04:05.000000Z' FROM record WHERE key = 'sg'"
    )
    connection.commit()
    connection.close()
    assert "4, mean score 0.50, last 2026-01-02 03:04 UTC" in cli("graph", "show", drawn, "sg").out
    recalls = cli("graph", "show", drawn, "sg", "--format", "json").json["entity"]["recalls"]
    assert recalls == {"count": 4, "mean_score": 0.5, "last": "2026-01-02T03:04:05.000000Z"}


def test_the_graph_as_json(cli: Cli, drawn: Path) -> None:
    found = cli("graph", "show", drawn, "--json").json
    assert set(found) == {"entities", "relations", "more"}
    assert [entity["id"] for entity in found["entities"]] == ["sg", "lg", "cp", "cs", "alone"]
    assert found["relations"][0] == {
        "source_id": "sg",
        "target_id": "lg",
        "relation_type": "part_of",
        "weight": 1.0,
    }
    assert set(found["entities"][0]) >= {"id", "name", "entity_type", "description", "tags", "created_at"}
    assert cli("graph", "show", drawn, "--format", "json").json == found


# -- drawings ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def hostile(path: Path) -> Path:
    entities = [GraphEntity(id=name, name=name) for name in HOSTILE]
    relations = [
        relation(source, kind[:200], target, 0.5)
        for source, kind, target in zip(HOSTILE, reversed(HOSTILE), (*HOSTILE[1:], HOSTILE[0]), strict=True)
    ]
    fill(path, "alice", entities, relations)
    return path


def shown(text: str, *, limit: int = LABEL_CHARS) -> str:
    line = re.sub(r"[\x00-\x1f\u202a-\u202e]", "\ufffd", " ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


@pytest.mark.parametrize("command", [["show"], ["show", "end"], ["related", "end", "--depth", "6"]])
def test_dot_is_valid_whatever_names_hold(cli: Cli, hostile: Path, command: list[str]) -> None:
    lines = cli("graph", command[0], hostile, *command[1:], "--format", "dot").out.splitlines()
    assert lines[0] == "digraph memory {"
    assert lines[-1] == "}"
    assert lines[1:3] == ["  rankdir=LR;", '  node [shape=box, style="rounded"];']
    nodes = [found for line in lines[3:-1] if (found := DOT_NODE.fullmatch(line))]
    edges = [found for line in lines[3:-1] if (found := DOT_EDGE.fullmatch(line))]
    assert len(nodes) + len(edges) == len(lines) - 4
    assert [node[1] for node in nodes] == [f"n{at}" for at in range(1, len(nodes) + 1)]
    assert {end for edge in edges for end in edge.group(1, 2)} <= {node[1] for node in nodes}
    labels = {html.unescape(re.sub(r"\\(.)", r"\1", node[2])) for node in nodes}
    assert labels <= {shown(name) for name in HOSTILE}
    assert len(edges) >= 2


@pytest.mark.parametrize("command", [["show"], ["show", "end"], ["related", "end", "--depth", "6"]])
def test_mermaid_is_valid_whatever_names_hold(cli: Cli, hostile: Path, command: list[str]) -> None:
    lines = cli("graph", command[0], hostile, *command[1:], "--format", "mermaid").out.splitlines()
    assert lines[0] == "graph LR"
    nodes = [found for line in lines[1:] if (found := MERMAID_NODE.fullmatch(line))]
    edges = [found for line in lines[1:] if (found := MERMAID_EDGE.fullmatch(line))]
    assert len(nodes) + len(edges) == len(lines) - 1
    assert {end for edge in edges for end in edge.group(1, 3)} <= {node[1] for node in nodes}
    labels = {re.sub(r"#(\d+);", lambda found: chr(int(found[1])), node[2] or node[3]) for node in nodes}
    assert labels <= {shown(name) for name in HOSTILE}
    assert len(edges) >= 2


def test_tables_and_json_hold_one_line_a_row_whatever_names_hold(cli: Cli, hostile: Path) -> None:
    out = cli("graph", "show", hostile).out
    assert {len(row) for row in rows(out)} == {4}
    assert len(rows(out)) == 1 + len(HOSTILE)
    assert "\x1b" not in out
    assert {entity["name"] for entity in cli("graph", "show", hostile, "--json").json["entities"]} == set(HOSTILE)
    found = cli("graph", "related", hostile, HOSTILE[0], "--depth", 6, "--paths")
    assert {len(row) for row in rows(found.out)} == {5}
    for name in HOSTILE:
        assert cli("graph", "show", hostile, "--json", "--", name).json["entity"]["id"] == name


def test_one_relation_is_drawn(cli: Cli, drawn: Path) -> None:
    assert cli("graph", "show", drawn, "cs", "--format", "mermaid").out.splitlines() == [
        "graph LR",
        '  n1(["CheckpointSaver"])',
        '  n2["Checkpoint"]',
        '  n1 -->|"writes 0.5"| n2',
    ]
    assert '  n1 -> n2 [label="writes 0.5", penwidth=1.00];' in cli("graph", "show", drawn, "cs", "--format", "dot").out


def test_a_drawing_of_what_is_related_hangs_together(cli: Cli, drawn: Path) -> None:
    lines = cli("graph", "related", drawn, "lg", "--depth", 3, "--format", "mermaid").out.splitlines()
    assert [found.group(1, 3) for line in lines if (found := MERMAID_EDGE.fullmatch(line))] == [
        ("n2", "n1"),
        ("n3", "n2"),
        ("n4", "n3"),
    ]


# -- related ----------------------------------------------------------------------------------------------------------


def test_what_is_related(cli: Cli, drawn: Path) -> None:
    assert rows(cli("graph", "related", drawn, "LangGraph", "--depth", 3).out) == [
        ["distance", "weight", "entity", "type", "reached by"],
        ["1", "1.00", "StateGraph (sg)", "concept", "LangGraph <-part_of- StateGraph"],
        ["2", "0.80", "Checkpoint (cp)", "class", "StateGraph <-part_of- Checkpoint"],
        ["3", "0.40", "CheckpointSaver (cs)", "concept", "Checkpoint <-writes- CheckpointSaver"],
    ]
    whole = rows(cli("graph", "related", drawn, "cs", "--depth", 3, "--paths").out)
    assert whole[-1][-1] == "CheckpointSaver -writes-> Checkpoint -part_of-> StateGraph -part_of-> LangGraph"


def test_what_is_related_as_json(cli: Cli, drawn: Path) -> None:
    found = cli("graph", "related", drawn, "cs", "--paths", "--json").json
    assert found["start"]["id"] == "cs"
    hit = found["related"][1]
    assert (hit["entity"]["id"], hit["distance"], hit["score"], hit["weight"]) == ("sg", 2, 0.3333, 0.4)
    assert [one["relation_type"] for one in hit["relations"]] == ["writes", "part_of"]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["lg", "cp", "cs"]),
        (["--depth", "1"], ["lg", "cp"]),
        (["--direction", "in"], ["cp", "cs"]),
        (["--direction", "out"], ["lg"]),
        (["--relation", "part_of"], ["lg", "cp"]),
        (["--relation", "part_of", "--relation", "writes"], ["lg", "cp", "cs"]),
        (["--limit", "1"], ["lg"]),
        (["--relation", "nonsense"], []),
    ],
)
def test_which_way_and_how_far(cli: Cli, drawn: Path, options: list[str], ids: list[str]) -> None:
    done = cli("graph", "related", drawn, "sg", "--json", *options)
    assert [hit["entity"]["id"] for hit in done.json["related"]] == ids
    assert done.status == (0 if ids else 1)
    assert bool(done.err) is not bool(ids)


# -- tags -------------------------------------------------------------------------------------------------------------


def test_tags_with_their_counts(cli: Cli, drawn: Path) -> None:
    async def fill() -> None:
        async with memdb.open(drawn) as db:
            await db.memory("alice").pages.add_page(memdb.KnowledgePage(id="p", title="P", tags=["graph", "page"]))

    asyncio.run(fill())
    assert rows(cli("graph", "tags", drawn).out) == [
        ["tag", "entities", "pages"],
        ["graph", "2", "1"],
        ["page", "0", "1"],
        ["state-graph", "1", "0"],
    ]
    assert cli("graph", "tags", drawn, "State G", "--json").json == [{"tag": "state-graph", "entities": 1, "pages": 0}]
    none = cli("graph", "tags", drawn, "z")
    assert (none.status, none.complaint) == (1, f"{drawn} holds no tags that begin with 'z'")
    assert cli("graph", "tags", drawn, "--format", "dot").status == 2


# -- whose, where, how ------------------------------------------------------------------------------------------------

LOOKING = [["show"], ["show", "sg"], ["related", "sg"], ["tags"]]


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_nobody_sees_another_users_graph(cli: Cli, drawn: Path, command: list[str]) -> None:
    assert cli("graph", command[0], drawn, *command[1:], "--user", "bob").status == 1
    fill(drawn, "bob", [GraphEntity(id="sg", name="Bob's")], [])
    asked = cli("graph", command[0], drawn, *command[1:])
    assert asked.status == 2
    assert asked.complaint.endswith("--user: 'alice', 'bob'")
    assert "LangGraph" not in cli("graph", command[0], drawn, *command[1:], "--user", "bob").out
    assert cli("graph", "add", drawn, "Name").status == 2


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_nothing_there(cli: Cli, path: Path, tmp_path: Path, command: list[str]) -> None:
    done = cli("graph", command[0], path, *command[1:])
    assert (done.status, done.out) == (1, "")
    assert "yet" in done.complaint
    assert cli("graph", command[0], path, *command[1:], "--json").json is not None
    missing = cli("graph", command[0], tmp_path / "none.db", *command[1:])
    assert missing.status == 2
    assert "memdb init" in missing.complaint
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_looking_changes_no_file(cli: Cli, drawn: Path, command: list[str]) -> None:
    before = drawn.read_bytes()
    drawn.chmod(0o444)
    drawn.parent.chmod(0o555)
    try:
        assert cli("graph", command[0], drawn, *command[1:]).status == 0
    finally:
        drawn.parent.chmod(0o755)
    assert drawn.read_bytes() == before


def test_a_terminal_gets_columns_and_a_hint(cli: Cli, drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    out = cli("graph", "show", drawn).out
    assert "\t" not in out
    assert "--format dot or mermaid" in out
    assert "--format dot or mermaid" in cli("graph", "related", drawn, "sg").out
    assert json.loads(cli("graph", "show", drawn, "--json").out)["more"] is False
    assert cli("graph", "show", drawn, "--format", "dot").out.splitlines()[-1] == "}"


def test_the_group_prints_its_help(cli: Cli) -> None:
    whole = cli("graph")
    assert whole == cli("graph", "--help")
    assert whole.status == 0
    for name in ("add", "show", "related", "tags"):
        assert f"\n  {name} " in whole.out
        assert f"Example: memdb graph {name}" in cli("graph", name, "-h").out


def test_misuse_of_the_group(cli: Cli, drawn: Path) -> None:
    for arguments, said in (
        (["nonsense"], "nonsense"),
        (["show", drawn, "--format", "svg"], "--format"),
        (["show", drawn, "--json", "--format", "dot"], "--json is short for --format json"),
        (["show", drawn, "--depth", "2"], "name one"),
        (["related", drawn], "ENTITY"),
        (["related", drawn, "sg", "--direction", "up"], "--direction"),
        (["related", drawn, "sg", "--depth", "7"], "--depth"),
    ):
        done = cli("graph", *arguments)
        assert (done.status, done.out) == (2, "")
        assert said in done.complaint


def test_help_lists_the_commands_in_their_order(cli: Cli) -> None:
    listed = re.findall(r"^  (\w+)  ", cli("--help").out.partition("Commands:")[2], flags=re.M)
    assert listed == [command.__name__ for command in COMMANDS]


def test_the_demo_answers_a_question_through_its_graph(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "demo.db"
    lines = cli("demo", file).out.splitlines()
    asked = next(at for at, line in enumerate(lines) if line.startswith(OF_THE_GRAPH))
    assert lines[asked + 4].startswith("  0.20  boats  port 80 <-needs- HTTP-01 challenge <-renewed_by- certificate <-")
    for command in ("graph", "explain"):
        offered = next(shlex.split(line) for line in lines if line.startswith(f"  memdb {command} "))
        assert cli(*offered[1:]).status == 0
