"""What is asked of a model of the user's: an answer, or a ModelError that says whose model failed, and how."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memdb import InvalidInput, ModelError
from memdb.asking import ask, ask_text, ask_whole
from memdb.protocols import check_part
from memdb.text.reply import ChatReply
from memdb.text.traced import described

PROMPT = [{"role": "user", "content": "hello"}]


class Mute(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError


class Model:
    """Answers with one thing, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.options = answer, {}

    async def chat(self, messages: Any, **options: Any) -> Any:
        self.options = options
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer == "hang":
            await asyncio.sleep(600)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (ModelError("asked m: it is down"), "Model failed: asked m: it is down"),
        (KeyError("choices"), "Model failed: KeyError: 'choices'"),
        (ValueError(), "Model failed: ValueError"),
        (Mute(), "Model failed: Mute"),
        (TimeoutError("the client's own"), "Model failed: TimeoutError: the client's own"),
        (asyncio.CancelledError(), "Model failed: CancelledError"),
        (RuntimeError("bro\udc80ken \x00"), "Model failed: RuntimeError: bro?ken  "),
        (ChatReply("503", [], "error"), "Model failed: 503"),
        (ChatReply(None, [], "error"), "Model failed: it does not say why"),
        ({"content": "hi"}, "Model returned a dict, not a ChatReply"),
        (None, "Model returned a NoneType, not a ChatReply"),
        ("hang", "Model did not answer within 0.05 seconds"),
    ],
)
@pytest.mark.parametrize("asking", [ask, ask_whole])
async def test_what_is_no_answer_is_a_model_error(asking: Any, answer: Any, sentence: str) -> None:
    with pytest.raises(ModelError) as failed:
        await asking(Model(answer), PROMPT, seconds=0.05)
    assert str(failed.value) == sentence


async def test_an_answer_comes_back_as_it_is() -> None:
    cut_short = ChatReply("half an ans", [], "length")
    model = Model(cut_short)
    assert await ask(model, PROMPT, tools=[], max_tokens=7) is cut_short
    assert model.options == {"tools": [], "max_tokens": 7}
    assert await ask_text(model, "hello") == "half an ans"
    with pytest.raises(ModelError, match=r"^the answer of Model was cut short by the limit of tokens$"):
        await ask_whole(model, PROMPT)
    with pytest.raises(ModelError, match=r"^Model answered with no text$"):
        await ask_text(Model(ChatReply(None, [{}], "tool_calls")), "hello")


async def test_a_test_that_fails_is_not_a_model_that_fails() -> None:
    with pytest.raises(AssertionError):
        await ask(Model(AssertionError("asked once more")), PROMPT)


@pytest.mark.parametrize("seconds", [None, 600])
async def test_a_caller_that_is_cancelled_is_cancelled(seconds: float | None) -> None:
    task = asyncio.create_task(ask(Model("hang"), PROMPT, seconds=seconds))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(("part", "given"), [(None, "None"), (7, "int"), (Model, "the class Model")])
def test_a_part_is_an_object_with_its_methods(part: Any, given: str) -> None:
    check_part(Model("hi"), "llm", "chat(messages)")
    with pytest.raises(InvalidInput) as refused:
        check_part(part, "llm", "chat(messages)")
    assert str(refused.value) == f"llm must be an object with the method chat(messages), not {given}"


def test_a_description_is_bounded() -> None:
    assert described(ValueError("x" * 10_000)) == f"ValueError: {'x' * 2_000}"
