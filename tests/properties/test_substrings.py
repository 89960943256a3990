"""Scripts without spaces: any one to four characters that stand together in a text find it, when asked in quotes."""

from __future__ import annotations

import unicodedata

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import memdb
from memdb import KnowledgePage, MemoryItem
from memdb.text.scripts import RUN, fold
from tests.properties.running import run
from tests.strategies import SAME_EVERY_TIME

HAN, KANA = "部署方案数据库迁移回滚计划〇々語", "ひらがなのっカタカナーンヴ"
SOUTHEAST = "สวัสดีครับไทยน้ำที่" + "ພາສາລາວ" + "ភាសាខ្មែរ" + "မြန်မာစာ"
unspaced = st.sampled_from(HAN + KANA + "한국어조사" + SOUTHEAST + "\U00020000𠮷")
glue = st.sampled_from([" ", "，", "。", "-", "a", "API", " v2 ", "3", "é", "№", "\n", "“", "・"])
mixed = st.lists(unspaced | unspaced | unspaced | glue, min_size=1, max_size=24).map("".join)


def is_unspaced(text: str) -> bool:
    return bool(RUN.fullmatch(text[0])) and all(RUN.fullmatch(char) for char in text)


@settings(SAME_EVERY_TIME, max_examples=150)
@given(mixed, st.integers(1, 4), st.data())
@example("部署方案", 1, None)
def test_every_string_of_a_text_finds_it(text: str, length: int, data: st.DataObject | None) -> None:
    text = unicodedata.normalize("NFKC", text)
    strings = sorted(
        {text[at : at + length] for at in range(len(text)) if is_unspaced(text[at : at + length] or "x")}
        if data is not None
        else {"部", "部署", "署方案", "案"}
    )
    assume(strings)
    asked = strings if len(strings) <= 6 or data is None else data.draw(st.permutations(strings))[:6]

    async def go(db: memdb.Database) -> None:
        memory = db.memory()
        await memory.items.save(MemoryItem(id="hit", content=text))
        await memory.pages.add_page(KnowledgePage(id="hit", title=text))
        await memory.pages.add_page(KnowledgePage(id="summary", title="", summary=f"mostly {text}!", keywords=["k"]))
        await memory.items.save_many([MemoryItem(id=f"other{n}", content="nothing here 無関係") for n in range(3)])
        for string in asked:
            items = await memory.items.search(f'"{string}"')
            assert "hit" in [hit.item.id for hit in items], string
            assert [hit.item.id for hit in items if string not in fold(hit.item.content)] == [], string
            assert {page.id for page in await memory.pages.search(f'"{string}"')} == {"hit", "summary"}, string

    run(go)


@settings(SAME_EVERY_TIME, max_examples=60)
@given(st.text(st.sampled_from(HAN), min_size=2, max_size=12), st.text(st.sampled_from(HAN), min_size=2, max_size=4))
def test_a_string_that_is_not_in_a_text_does_not_find_it_in_quotes(text: str, string: str) -> None:
    async def go(db: memdb.Database) -> None:
        await db.memory().items.save(MemoryItem(id="a", content=text))
        assert bool(await db.memory().items.search(f'"{string}"')) == (string in text)

    run(go)
