"""The sections of a working summary: read from what models really answer, written in one form, trimmed to a budget."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memdb.text.section_headings import SECTIONS
from memdb.text.sections import TRIM_ORDER, goal_of, parse_sections, render_sections, trim_sections
from memdb.text.tokens import TokenCounter

GOAL, DONE, FOUND, OPEN, DECIDED = SECTIONS
FULL = {GOAL: ["Refactor auth"], DONE: ["read it", "wrote it"], FOUND: ["uses JWT"], OPEN: ["slow"], DECIDED: ["RS256"]}
WRITTEN = """\
# Current Goal
Refactor auth

# Completed
* read it
* wrote it

# Important Discoveries
* uses JWT

# Open Issues
* slow

# Decisions
* RS256"""


def test_the_documented_form():
    assert render_sections(FULL) == WRITTEN
    assert parse_sections(WRITTEN) == FULL
    assert goal_of(FULL) == "Refactor auth"
    assert [line for line in render_sections({}).splitlines() if line] == [f"# {name}" for name in SECTIONS]


@pytest.mark.parametrize(
    "answer",
    [
        f"```markdown\n{WRITTEN}\n```",
        f"Sure, here is it:\n\n~~~\n{WRITTEN}\n~~~\nLet me know if I can help!",
        f"```\n{WRITTEN}",  # cut short before the fence closed
        f"<think>\n# Decisions\n* a draft\n</think>\n{WRITTEN}",
        f"# Decisions\n* a draft, its opening tag in the prompt</think>{WRITTEN}",
        f"# Summary\nof the session\n\n{WRITTEN}",
        WRITTEN.replace("# ", "## "),
        WRITTEN.replace("# ", "#"),
        WRITTEN.replace("# ", "### ").upper().replace("REFACTOR AUTH", "Refactor auth").replace("READ IT", "read it")
        .replace("WROTE IT", "wrote it").replace("USES", "uses").replace("SLOW", "slow"),
        WRITTEN.replace("# Current Goal\n", "# Goal: ").replace("# Open Issues", "# 4. OPEN ISSUES (so far) ✅ #"),
        "\n".join(f"**{line[2:]}:**" if line.startswith("#") else line for line in WRITTEN.splitlines()),
        "\n".join(f"{n}. __{line[2:]}__" if line[:1] == "#" else line for n, line in enumerate(WRITTEN.splitlines())),
        "\n".join(f"{line[2:]}:" if line.startswith("#") else line for line in WRITTEN.splitlines()),
        "\n".join(f"{line[2:]}\n=======" if line.startswith("#") else line for line in WRITTEN.splitlines()),
        "Current goal: Refactor auth\nCompleted:\n- read it\n- wrote it\nDiscoveries: uses JWT\nIssues: slow\n"
        "Decision: RS256",
        WRITTEN.replace("* ", "  - ").replace("\n\n", "\n"),
        WRITTEN.replace("* read it\n* wrote it", "1. read it\n2) wrote it").replace("\n", "\r\n"),
        "\n\n---\n\n".join(reversed(WRITTEN.split("\n\n"))),
        WRITTEN.replace("# Open", "# Completed\n* wrote it\n* read it\n\n# Open"),
        f"# Current Goal\nan older one\n{WRITTEN}",
        f"{WRITTEN}\n# Current Goal\nNone.",
    ],
    ids=range(21),
)  # fmt: skip
def test_every_way_of_saying_it_means_the_same(answer):
    assert parse_sections(answer) == FULL


@pytest.mark.parametrize(
    "answer", ["", " \n", "I'm sorry, but I cannot do that.", "* a\n* b", "# Summary\n* a", "<think># Current Goal\nx",
               "<think># Decisions\n* x</think>", "```\n```", "#" * 50_000, "{}", "\x00", "Completed. Decisions made"],
    ids=range(12),
)  # fmt: skip
def test_what_has_no_section_is_nothing(answer):
    assert parse_sections(answer) == {}


@pytest.mark.parametrize(
    "said", ["None", "* N/A", "- (none)", "*None yet.*", "...", "* \n*", "Nothing", "**-**", "\n\n"]
)
def test_a_section_that_says_nothing_is_there_and_empty(said):
    assert parse_sections(f"# Current Goal\nx\n# Completed\n{said}\n# Decisions") == {
        GOAL: ["x"],
        DONE: [],
        DECIDED: [],
    }


def test_what_belongs_to_an_entry_stays_with_it():
    answer = """\
# Completed
- the parser
  in two steps
  - first step
    deeper
- the tests, which
go on here

A paragraph.
- runs with
```sh
# Decisions
  make   test

```
# Decisions
* ```py
  def f():
      return "# Completed"
  ```
"""
    assert parse_sections(answer) == {
        DONE: [
            "the parser\nin two steps\n- first step\n  deeper",
            "the tests, which\ngo on here",
            "A paragraph.",
            "runs with\n```sh\n# Decisions\n  make   test\n\n```",
        ],
        DECIDED: ['```py\ndef f():\n    return "# Completed"\n```'],
    }


def test_headings_of_the_models_own_lose_nothing():
    answer = "# Completed\n* a\n## Backend\n* b\n* c\n## Frontend\n# Risks\n* d\n\nand e\n# Decisions\n* f"
    assert parse_sections(answer) == {
        DONE: ["a", "Backend: b", "Backend: c", "Frontend"],
        FOUND: ["Risks: d", "Risks: and e"],
        DECIDED: ["f"],
    }


def test_tags_and_names_that_a_summary_is_about_are_text():
    answer = "# Current Goal\nparse </think> tags\n# Decisions\n* Completed: is no heading here\n* #hashtags stay"
    assert parse_sections(answer) == {
        GOAL: ["parse </think> tags"], DECIDED: ["Completed: is no heading here", "#hashtags stay"]
    }  # fmt: skip


FRAGMENTS = st.sampled_from(
    ["# Current Goal", "## Completed", "**Decisions**", "Open Issues:", "# Other", "#", "* a", "- b c", "  * deep",
     "1. n", "text", "    far", "\tx", "```", "```py", "~~~~", "* ```", "---", "===", "", "None", "* # Completed",
     "Goal: x", "* **Decisions**: y", "• z", "*", "* *", "<think>", "</think>", "猫 🙂", "`", "**", "# Goal: - x",
     "+ 1) 2"]
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(FRAGMENTS, max_size=14).map("\n".join) | st.text(max_size=60).map("# Goal\n".__add__))
@example("# Goal\n* ```\n# Decisions\n```\nx\n```")
def test_what_was_read_is_written_so_that_it_reads_the_same(answer):
    found = parse_sections(answer)
    if not found:
        return
    again = parse_sections(render_sections(found))
    assert list(again) == list(SECTIONS)
    assert {name: entries for name, entries in again.items() if entries} == {n: e for n, e in found.items() if e}


# -- trimming ----------------------------------------------------------------------------------------------------------


def words(text: str) -> int:
    return len(text.split())


LONG = {name: [f"{name.split()[0]}{n}" for n in range(5)] for name in SECTIONS[1:]} | {GOAL: ["mend the login"]}


def test_the_oldest_of_the_least_important_goes_first():
    whole = words(render_sections(LONG))
    assert trim_sections(LONG, whole, words) == render_sections(LONG)
    gone = []
    for budget in range(whole - 1, whole - 2 * 20 - 1, -2):  # an entry is its bullet and a word
        kept = parse_sections(trim_sections(LONG, budget, words))
        assert goal_of(kept) == "mend the login"
        gone += [entry for name in SECTIONS for entry in LONG[name] if entry not in [*gone, *kept.get(name, [])]]
    assert gone == [entry for name in TRIM_ORDER for entry in LONG[name]]


def test_the_goal_is_cut_last_and_only_when_it_is_too_long_by_itself():
    assert trim_sections(LONG, 6, words) == "# Current Goal\nmend the login"
    assert trim_sections(LONG, 5, words) == "# Current Goal\nmend the…"
    assert trim_sections(LONG, 0, words) == "# Current Goal\nm…"
    assert trim_sections({DONE: ["a"]}, 3, words) == "# Current Goal\n"


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(SECTIONS), st.lists(st.text(min_size=1, max_size=40), max_size=8)),
    st.integers(12, 200),
)
def test_the_budget_is_kept_in_real_tokens(sections, budget):
    count = TokenCounter().count
    text = trim_sections(sections, budget, count)
    assert count(text) <= budget
    assert text == trim_sections(sections, budget, count)
    assert text.startswith("# Current Goal")


@pytest.mark.parametrize(
    "answer",
    ["# " * 200_000, "```a\n" * 100_000, "# Completed\n" + "* a\n" * 100_000, "**" * 200_000, "</think>" * 100_000,
     "\n".join("`" * n for n in range(3, 900)), "# Current Goal: " * 50_000, "#" * 400_000, "1. " * 200_000,
     "# Completed\n" + "\n".join(f"* {n}" for n in range(60_000)), " \t" * 200_000],
    ids=range(11),
)  # fmt: skip
def test_a_large_answer_is_read_at_all(answer):
    """What grew with the square of the length would take minutes here."""
    assert words(trim_sections(parse_sections(answer), 100, words)) <= 100
