"""One tool: what a model is told of it, and what happens when it is called."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memdb.errors import InvalidInput, MemdbError
from memdb.llm.tools.arguments import adjusted, named_arguments, read_arguments, unknown_arguments
from memdb.llm.tools.bench import Bench
from memdb.llm.tools.parameters import Parameter
from memdb.llm.tools.result import LEAST_TOKENS, ToolResult, bounded, failure
from memdb.text.query import cleaned
from memdb.text.traced import described, traced

log = logging.getLogger("memdb")

Asked = Mapping[str, Any]  # the arguments of a call, read
Act = Callable[[Bench, Asked], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What makes a tool.

    Args:
        name: 1 to 64 characters of A-Z, a-z, 0-9, _ and -.
        description: what a model is told: what the tool does and when to call it.
        parameters: of a call.
        act: does it; what it raises becomes a result.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    act: Act


class MemoryTool:
    """A tool by which an agent works on its own memory. Made by create_memory_tools.

    Attributes:
        name: its name.
        description: what a model is told of it.
        parameters: the JSON Schema of its arguments.
        schema: the tool in the shape of the OpenAI API: {"type": "function", "function": {...}}.
        strict_schema: the same with `strict: true`, by which the OpenAI API holds a model to the schema to the letter.
        anthropic_schema: the tool in the shape of the Anthropic API: name, description, input_schema.
    """

    def __init__(self, recipe: Recipe, bench: Bench) -> None:
        self._recipe = recipe
        self._bench = bench

    def __repr__(self) -> str:
        return f"MemoryTool({self.name!r})"

    @property
    def name(self) -> str:
        return self._recipe.name

    @property
    def description(self) -> str:
        return self._recipe.description

    @property
    def parameters(self) -> dict[str, Any]:
        parameters = self._recipe.parameters
        return {
            "type": "object",
            "properties": {one.name: one.schema() for one in parameters},
            "required": [one.name for one in parameters if one.required],
            "additionalProperties": False,
        }

    @property
    def schema(self) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @property
    def strict_schema(self) -> dict[str, Any]:
        parameters = self._recipe.parameters
        every = {one.name: one.strict_schema() for one in parameters}
        form = {**self.parameters, "properties": every, "required": [*every]}
        function = {"name": self.name, "description": self.description, "parameters": form, "strict": True}
        return {"type": "function", "function": function}

    @property
    def anthropic_schema(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    async def execute(self, /, *given: Any, **arguments: Any) -> ToolResult:
        """Carry out a call and return what came of it. Nothing is raised but a cancellation.

        Args:
            given: the arguments as one value, as a model sent them: their JSON text, a dict, or a list that begins with
                a dict. Numbers may be text, null is as good as left out, keys that are not known are ignored.
            arguments: or the arguments by name.

        Returns:
            A result of status "error" where an argument is missing or not what it must be, and where the memory
            could not do it; its error is a sentence for the model. Where a number out of its range was moved or left
            out, metadata["adjusted"] names what was used, and the content ends with a note. str(result) never costs
            more tokens than create_memory_tools was told.
        """
        bench, parameters = self._bench, self._recipe.parameters
        named: Mapping[str, Any] = {}
        try:
            if len(given) > 1 or (given and arguments):
                raise InvalidInput("give the arguments as one object, or each by its name")
            named = named_arguments(given[0] if given else arguments, parameters)
            result = await self._done(named)
        except MemdbError as error:
            unknown = unknown_arguments(named, parameters) if isinstance(error, InvalidInput) else ""
            log.info("the tool %s failed: %s", self.name, cleaned(f"{error}{unknown}"))
            result = failure(f"{error}{unknown}", error_type=type(error).__name__)
        except Exception as error:
            log.error("the tool %s failed\n%s", self.name, traced(error))
            result = failure(f"{self.name} failed: {described(error)}", error_type=type(error).__name__)
        return await finished(result, bench, self.name)

    async def _done(self, named: Mapping[str, Any]) -> ToolResult:
        """Return what came of a call, told of which numbers were moved."""
        bench, asked = self._bench, read_arguments(named, self._recipe.parameters)
        used, note = adjusted(named, self._recipe.parameters, asked)
        if not note:
            return await self._recipe.act(bench, asked)
        cost = await asyncio.to_thread(bench.count, f"\n{note}")
        result = await self._recipe.act(replace(bench, tokens=max(LEAST_TOKENS, bench.tokens - cost)), asked)
        return replace(result, content=f"{result.content}\n{note}", metadata={**result.metadata, "adjusted": used})


async def finished(result: ToolResult, bench: Bench, name: str) -> ToolResult:
    """Return a result as it may go to a model: within its tokens, and text that every API takes."""
    try:
        return await asyncio.to_thread(bounded, result, bench.tokens, bench.count)
    except Exception as error:  # a counter of the caller's own
        log.error("the result of the tool %s could not be measured\n%s", name, traced(error))
        return failure(f"the result of {name} could not be measured", error_type=type(error).__name__)
