from __future__ import annotations

import gzip
import hashlib
import random
import socket
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdb.errors import InvalidInput
from memdb.text import tables, tokens
from memdb.text.tables import TABLES, Table
from memdb.text.tokens import TOKENS_PER_MESSAGE, TokenCounter

CARRIED = Path(tables.__file__).parent

# text, tokens in cl100k_base, tokens in o200k_base: what tiktoken's own constructors give.
KNOWN = [
    ("", 0, 0),
    ("hello world", 2, 2),
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("I'LL don't won’t", 7, 6),
    ("antidisestablishmentarianism", 6, 6),
    ("def add(a: int, b: int) -> int:\n    return a + b\n", 19, 19),
    ("    \n\n\t x  y\r\n", 6, 6),
    ("1234567 89 3.14159", 10, 10),
    ("用户喜欢喝绿茶。", 12, 6),
    ("ユーザーは緑茶が好きです。", 16, 10),
    ("사용자는 녹차를 좋아합니다.", 15, 9),
    ("Пользователь любит зелёный чай.", 13, 9),
    ("المستخدم يحب الشاي الأخضر.", 19, 8),
    ("המשתמש אוהב תה ירוק.", 19, 10),
    ("उपयोगकर्ता को हरी चाय पसंद है।", 32, 12),
    ("ผู้ใช้ชอบชาเขียว", 15, 7),
    ("Ο χρήστης προτιμά πράσινο τσάι.", 29, 15),
    ("Người dùng thích trà xanh.", 12, 7),
    ("👩‍👩‍👧‍👦 🇫🇷 🎉", 27, 17),
    ("<|endoftext|>", 7, 7),  # a special token in the mouth of a user is text
    ("<|fim_prefix|><|im_start|>", 12, 11),
]

ORDINARY = {
    "English": "Alice moved to Lisbon in March 2024. She's allergic to peanuts, and prefers tea (not coffee).",
    "German": "Die Geschwindigkeitsbegrenzung wurde vorübergehend aufgehoben. Größe und Straße stehen fest.",
    "Finnish": "Käyttäjä haluaa, että muistiinpanot tallennetaan välittömästi. Järjestelmällisyys on hyvästä.",
    "Polish": "Użytkownik chciałby, żeby wszystkie wiadomości były przechowywane. Chrząszcz brzmi w trzcinie.",
    "Turkish": "Kullanıcının tercihleri değiştirildiğinde güncellenmelidir. Çekoslovakyalılaştıramadıklarımızdan.",
    "Vietnamese": "Người dùng thích uống trà xanh vào buổi sáng. Cuộc họp được chuyển sang thứ sáu tuần sau.",
    "Welsh": "Mae'r defnyddiwr yn hoffi te gwyrdd yn y bore. Cynhelir y cyfarfod nesaf ddydd Gwener.",
    "Greek": "Ο χρήστης προτιμά το πράσινο τσάι το πρωί. Η συνάντηση μεταφέρθηκε για την Παρασκευή.",
    "Russian": "Пользователь предпочитает зелёный чай по утрам. Встреча перенесена на пятницу.",
    "Ukrainian": "Користувач любить зелений чай зранку. Зустріч перенесено на п'ятницю, її під'їзд ґанок.",
    "Kazakh": "Пайдаланушы таңертең көк шай ішкенді ұнатады. Кездесу жұма күніне ауыстырылды.",
    "Hebrew": "המשתמש אוהב לשתות תה ירוק בבוקר. הפגישה נדחתה ליום שישי.",
    "Arabic": "يفضل المستخدم الشاي الأخضر في الصباح. تم تأجيل الاجتماع إلى يوم الجمعة.",
    "Persian": "کاربر صبح‌ها چای سبز را ترجیح می‌دهد. جلسه به روز جمعه منتقل شد.",
    "Urdu": "صارف صبح کے وقت سبز چائے پسند کرتا ہے۔ ملاقات جمعہ تک ملتوی کر دی گئی۔",
    "Hindi": "उपयोगकर्ता को सुबह हरी चाय पसंद है। बैठक शुक्रवार तक स्थगित कर दी गई।",
    "Bengali": "ব্যবহারকারী সকালে সবুজ চা পছন্দ করেন। সভাটি শুক্রবার পর্যন্ত স্থগিত করা হয়েছে।",
    "Tamil": "பயனர் காலையில் பச்சை தேநீரை விரும்புகிறார். கூட்டம் வெள்ளிக்கிழமைக்கு ஒத்திவைக்கப்பட்டது.",
    "Thai": "ผู้ใช้ชอบดื่มชาเขียวตอนเช้า การประชุมเลื่อนไปเป็นวันศุกร์หน้า",
    "Khmer": "អ្នកប្រើចូលចិត្តតែបៃតងនៅពេលព្រឹក។",
    "Burmese": "အသုံးပြုသူသည် မနက်ပိုင်းတွင် လက်ဖက်စိမ်းကို ကြိုက်သည်။",
    "Georgian": "მომხმარებელს დილით მწვანე ჩაი უყვარს. შეხვედრა პარასკევისთვის გადაიდო.",
    "Armenian": "Օգտատերը առավոտյան նախընտրում է կանաչ թեյ։ Հանդիպումը տեղափոխվել է ուրբաթ։",
    "Amharic": "ተጠቃሚው ጠዋት አረንጓዴ ሻይ ይወዳል። ስብሰባው ወደ አርብ ተዛወረ።",
    "Simplified Chinese": "用户早上喜欢喝绿茶，不喝咖啡。会议改到星期五下午三点，地点在北京饭店。",
    "Traditional Chinese": "使用者早上喜歡喝綠茶，不喝咖啡。會議改到星期五下午三點，請儲存並繼續編輯。",
    "Japanese": "ユーザーは朝に緑茶を飲むのが好きです。会議は金曜日の午後三時に変更されました。",
    "Korean": "사용자는 아침에 녹차를 마시는 것을 좋아합니다. 회의가 금요일 오후로 변경되었습니다.",
    "short words": "Ei. Ez. Vr. Wt. Faoi. suec. Igbo. Juni. Юк. Jan. আজ. 線. Ĉu. Où",
    "emoji": "Great job 🎉🎉 see you 👩‍👩‍👧‍👦 at the 🏖️ tomorrow 👍🏽 😀😂🤣🥲",
    "numbers": "1 2 3 45 678 9,012.34 2024-03-01T09:30:00Z +351 912 345 678 0xDEADBEEF 10.0.0.1",
    "Python": "class A(Base):\n    def __init__(self, x: int = 0) -> None:\n        self._x = {k: v for k, v in x}\n\n",
    "JSON": '{"id": "call_9f3a", "items": [{"a": null, "b": [1, 2.5, -3e8]}, {"path": "C:\\\\tmp\\\\x.txt"}]}',
    "SQL": "SELECT id, bm25(x_fts) AS score\n  FROM x_fts\n WHERE x_fts MATCH ?1\n ORDER BY score LIMIT 10;",
    "Markdown table": "| name   | value |\n|--------|------:|\n| alpha  |    12 |\n| b_gamma|  3.14 |\n",
}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has read no table and given no warning."""
    monkeypatch.setattr(tables, "_encodings", {})
    monkeypatch.setattr(tokens, "_warned", set())
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)


@pytest.fixture
def tableless(fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An install that has lost its tables; returns the folder where they should be."""
    monkeypatch.setattr(tables, "_CARRIED", tmp_path)
    return tmp_path


def estimator(name: str) -> TokenCounter:
    counter = TokenCounter(name)
    with pytest.warns(RuntimeWarning, match=name):
        assert not counter.exact
    return counter


def raw(name: str) -> bytes:
    return gzip.decompress((CARRIED / f"{name}.tiktoken.gz").read_bytes())


# Exact counts


@pytest.mark.parametrize(("text", "cl100k", "o200k"), KNOWN)
def test_counts_are_those_of_tiktoken(text: str, cl100k: int, o200k: int) -> None:
    assert TokenCounter().count(text) == cl100k
    assert TokenCounter("o200k_base").count(text) == o200k


def test_a_counter_says_what_it_is() -> None:
    counter = TokenCounter()
    assert (counter.name, counter.exact, repr(counter)) == ("cl100k_base", True, "TokenCounter('cl100k_base')")


def test_encodings_that_differ_in_special_tokens_only_count_alike() -> None:
    texts = [text for text, _, _ in KNOWN]
    assert [*map(TokenCounter("o200k_harmony").count, texts)] == [*map(TokenCounter("o200k_base").count, texts)]


def test_lone_surrogates_count_as_the_replacement_character() -> None:
    assert TokenCounter().count("tea \ud800 and \udfff") == TokenCounter().count("tea \ufffd and \ufffd")


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_a_long_text_counts_as_if_it_were_encoded_whole(name: str) -> None:
    dice = random.Random(7)
    prose = " ".join(dice.choices([*ORDINARY.values()], k=2_000))
    junk = "".join(dice.choices("ab'sX  \t\r\n1٣½²_!?.,-/’é中。e\u0301😀\u200d\x1c\x85\u3000", k=100_000))
    contractions = (
        "abc" + " don't" * 2_000
    )  # the first place to cut would be before an apostrophe, but o200k_base joins it
    encoding = tables.load(TABLES[name], allow_network=False)
    assert encoding is not None
    for text in (prose, junk, contractions):
        assert TokenCounter(name).count(text) == len(encoding.encode_ordinary(text))


@pytest.mark.parametrize(("unit", "expected"), [("a", 125_000), (" ", 7_813), ("1", 333_334)])
def test_a_million_times_the_same_character(unit: str, expected: int) -> None:
    assert TokenCounter("o200k_base").count(unit * 1_000_000) == expected  # tiktoken 0.14 alone panics on the spaces


@pytest.mark.parametrize("text", [None, b"tea", 3, ["tea"]])
def test_only_text_is_counted(text: object) -> None:
    with pytest.raises(InvalidInput, match="text must be text"):
        TokenCounter().count(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gpt-4", "", None, ["cl100k_base"]])
def test_an_unknown_encoding_names_the_known_ones(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"not .*: one of cl100k_base.*o200k_base.*r50k_base"):
        TokenCounter(name)  # type: ignore[arg-type]


# The tables


def test_the_tables_are_what_tiktoken_would_build(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        openai_public, "load_tiktoken_bpe", lambda url, expected_hash: asked.append((url, expected_hash))
    )
    monkeypatch.setattr(openai_public, "data_gym_to_mergeable_bpe_ranks", lambda **_: None)
    for name in TABLES.keys() & openai_public.ENCODING_CONSTRUCTORS.keys():  # an older tiktoken knows fewer
        asked.clear()
        table = TABLES[name]
        assert openai_public.ENCODING_CONSTRUCTORS[name]()["pat_str"] == table.pattern
        assert asked == [(table.url, table.sha256)] or name == "gpt2"  # gpt2 is built from two files of another kind


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_the_carried_files_are_whole(name: str) -> None:
    assert hashlib.sha256(raw(name)).hexdigest() == TABLES[name].sha256
    assert len(raw(name).splitlines()) == TABLES[name].size
    assert "MIT License" in (CARRIED / "LICENSE").read_text()


def test_importing_and_making_a_counter_does_not_import_tiktoken() -> None:
    program = "import sys, memdb.text.tokens as t; t.TokenCounter(); print(*{'tiktoken', 'regex'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_only_the_table_that_is_used_is_read(fresh: None) -> None:
    TokenCounter("o200k_base")
    assert TokenCounter().count("hello world") == 2
    assert [*tables._encodings] == ["cl100k_base"]


def test_many_threads_read_a_table_once(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, loaded, start = [], [], threading.Barrier(8)
    find = tables._find
    monkeypatch.setattr(tables, "_find", lambda *args: reads.append(args) or find(*args))

    def work() -> None:
        start.wait()
        loaded.append(tables.load(TABLES["cl100k_base"], allow_network=False))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 8
    assert len({*map(id, loaded)}) == 1
    assert len(reads) == 1


# Where a table comes from


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sockets fail; returns the list of attempts."""
    attempts: list[str] = []

    def refuse(*args: object, **_: object) -> None:
        attempts.append(repr(args))
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return attempts


def test_a_carried_table_needs_no_network(fresh: None, no_network: list[str]) -> None:
    assert TokenCounter().count("hello world") == 2
    assert TokenCounter("o200k_base").exact
    assert no_network == []


@pytest.mark.parametrize("name", ["gpt2", "r50k_base", "p50k_base", "p50k_edit"])
def test_an_encoding_that_is_not_carried_is_estimated_without_asking_the_network(
    fresh: None, no_network: list[str], name: str
) -> None:
    assert estimator(name).count("hello world") >= 2
    assert no_network == []


def test_the_network_is_asked_only_when_allowed_and_its_failure_is_no_error(fresh: None, no_network: list[str]) -> None:
    counter = TokenCounter("p50k_base", allow_network=True)
    with pytest.warns(RuntimeWarning, match="p50k_base"):
        assert counter.count("hello world") >= 2
    assert len(no_network) >= 1


@pytest.mark.parametrize("whole", [True, False])
def test_what_the_network_gives_must_have_the_right_sum(
    tableless: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    def give(table: Table) -> bytes:
        return raw(table.name) if whole else raw(table.name)[:-1]

    monkeypatch.setattr(tables, "_from_network", give)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert TokenCounter(allow_network=True).exact is whole


def cache(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> Path:
    file = folder / hashlib.sha1(TABLES["cl100k_base"].url.encode()).hexdigest()
    file.write_bytes(content)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    return file


def test_the_cache_folder_of_tiktoken_comes_first(tableless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache(tableless, monkeypatch, raw("cl100k_base"))
    assert TokenCounter().exact


def test_a_wrong_file_in_the_cache_folder_is_passed_over(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = cache(tmp_path, monkeypatch, b"IQ== 0\n")
    assert TokenCounter().count("hello world") == 2
    assert file.read_bytes() == b"IQ== 0\n"  # not ours to remove


DAMAGE = {
    "missing": None,
    "empty": b"",
    "not gzip": b"IQ== 0\n",
    "cut short": (CARRIED / "cl100k_base.tiktoken.gz").read_bytes()[:100_000],
    "corrupt": (CARRIED / "cl100k_base.tiktoken.gz").read_bytes()[:100_000] + b"\x00" * 100_000,
    "another table": gzip.compress(b"IQ== 0\n"),
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_table_gives_estimates_and_one_warning(tableless: Path, content: bytes | None) -> None:
    if content is not None:
        (tableless / "cl100k_base.tiktoken.gz").write_bytes(content)
    counter = TokenCounter()
    with pytest.warns(RuntimeWarning, match="no table of cl100k_base") as warned:
        assert counter.count("hello world") >= 2
    assert [warning.filename for warning in warned] == [__file__]  # it points at who counted
    assert counter.count("") == 0
    assert not counter.exact
    assert not TokenCounter().exact  # no second warning, which would be an error here


# The estimate


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_an_estimate_is_never_below_the_truth_on_ordinary_text(
    tableless: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    estimate = estimator(name).count
    monkeypatch.undo()
    exact = TokenCounter(name).count
    low = {
        part: (estimate(part), exact(part))
        for text in ORDINARY.values()
        for part in [text, text * 20, *text.splitlines(keepends=True), *text.replace("。", ". ").split(". ")]
        if estimate(part) < exact(part)
    }
    assert low == {}


def test_an_estimate_of_english_is_within_three_times_the_truth(tableless: Path) -> None:
    assert estimator("cl100k_base").count(KNOWN[2][0]) <= 3 * KNOWN[2][1]


@pytest.mark.parametrize("text", ["a", " ", "\n", "1", "的", "\ud800", "\x00", "   ", "é", "👍"])
def test_an_estimate_is_never_zero(tableless: Path, text: str) -> None:
    assert estimator("cl100k_base").count(text) >= 1
    assert estimator("r50k_base").count(text) >= 1


ASCII = st.text(st.characters(max_codepoint=127), max_size=40)
PIECES = st.sampled_from(
    ["'ll", "'LL", "'Ve", "don't", "I'm", "  ", "\n", "\r\n", "\t\tfoo", " x", "1234", "!", "...\n", "\x1c"]
)


@settings(max_examples=1_000, deadline=None, derandomize=True, database=None)
@given(ASCII | st.lists(PIECES, max_size=12).map("".join))
def test_ascii_text_counts_as_tiktoken_counts_it(text: str) -> None:
    counter = TokenCounter()
    assert counter._encoding is not None
    assert counter.count(text) == len(counter._encoding.encode_ordinary(text))


def test_no_more_than_some_pieces_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_MOST_PIECES", 10)
    counter = TokenCounter()
    words = [f" {chr(97 + number)}" for number in range(25)] + [" " + "long" * 20]
    assert [counter.count("".join(words)) for _ in range(2)] == [
        len(counter._encoding.encode_ordinary("".join(words)))
    ] * 2  # type: ignore[union-attr]
    assert len(counter._pieces) <= 10
    assert words[-1] not in counter._pieces


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters(), min_size=1))
def test_any_text_costs_at_least_one_token_and_at_most_its_bytes(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert 1 <= TokenCounter().count(text) <= size
    for rates in (tokens._RATES, tokens._RATES_50K):
        assert 1 <= tokens._estimate(text, rates) <= size


# Messages

CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "tea"}'}}
CALL_JSON = '{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{\\"q\\": \\"tea\\"}"}}'


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ({"role": "user", "content": "I like tea"}, ["user", "I like tea"]),
        ({"role": "assistant", "content": None}, ["assistant"]),
        ({"role": "assistant", "content": ""}, ["assistant"]),
        ({"role": "user", "name": "alice", "content": "hi"}, ["user", "alice", "hi"]),
        ({"role": "user", "content": ["one", {"type": "text", "text": "two"}]}, ["user", "one", "two"]),
        ({"role": "user", "content": [{"type": "image", "url": "x"}]}, ["user", '{"type": "image", "url": "x"}']),
        ({"role": "user", "content": {"text": "a part alone"}}, ["user", "a part alone"]),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, ["assistant", CALL_JSON]),
        ({"role": "assistant", "tool_calls": [CALL, CALL]}, ["assistant", CALL_JSON, CALL_JSON]),
        ({"role": "tool", "tool_call_id": "call_1", "content": "42"}, ["tool", "call_1", "42"]),
        ({"role": "user", "content": "喝茶", "metadata": {"not": "sent"}}, ["user", "喝茶"]),
        ({"role": "user", "content": [{"type": "x", "value": "茶"}]}, ["user", '{"type": "x", "value": "茶"}']),
        ({}, []),
    ],
)
def test_a_message_costs_all_that_is_sent_of_it(message: dict[str, object], texts: list[str]) -> None:
    counter = TokenCounter()
    assert counter.count_messages([message]) == 4 + sum(map(counter.count, texts))


def test_messages_add_up() -> None:
    counter = TokenCounter()
    one, two = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello world"}
    assert TOKENS_PER_MESSAGE == 4
    assert counter.count_messages([]) == 0
    assert counter.count_messages(message for message in (one, two)) == (4 + 1 + 1) + (4 + 1 + 2)


@pytest.mark.parametrize("messages", [{"role": "user"}, ["hi"], [None]])
def test_what_is_no_message_is_refused(messages: object) -> None:
    with pytest.raises(InvalidInput, match="a message must be a mapping"):
        TokenCounter().count_messages(messages)  # type: ignore[arg-type]


def test_what_json_cannot_hold_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    for part in (loop, {("a", "key"): 1}):
        with pytest.raises(InvalidInput, match="content of a message"):
            TokenCounter().count_messages([{"role": "user", "content": [part]}])
