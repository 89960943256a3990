"""The tools of one memory together: made, offered to a model, called (Asterix document, "Built-in Memory Tools")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memdb.errors import InvalidInput
from memdb.layers.arguments import check_bulk, check_key, check_range
from memdb.llm.tools import archival, core_memory, loading, recalling, saving
from memdb.llm.tools.bench import AgentMemory, Bench
from memdb.llm.tools.calls import is_several, read_call
from memdb.llm.tools.result import ToolResult, failure
from memdb.llm.tools.tool import MemoryTool, finished
from memdb.protocols import ChatModel, CountsTokens, check_model, check_part
from memdb.storage.transaction import Transaction
from memdb.text.answer import one_line
from memdb.text.tokens import TokenCounter

RESULT_TOKENS = 2_000
MIN_RESULT_TOKENS = 200  # a heading, a line or two, an error in full
MAX_RESULT_TOKENS = 1_000_000


class MemoryTools(list[MemoryTool]):
    """The tools of one memory, in their order.

    >>> tools = memdb.create_memory_tools(memory)
    >>> reply = await llm.chat(messages, tools=tools.schemas)
    >>> messages += [await tools.run(call) for call in reply.tool_calls]
    """

    def __init__(self, tools: Iterable[MemoryTool], bench: Bench) -> None:
        super().__init__(tools)
        self._bench = bench

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [tool.name for tool in self]

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """Their schemas, for the OpenAI API and for memdb's clients of both."""
        return [tool.schema for tool in self]

    @property
    def strict_schemas(self) -> list[dict[str, Any]]:
        """Their schemas for the OpenAI API with `strict: true`: parameters that may be left out are sent as null."""
        return [tool.strict_schema for tool in self]

    @property
    def anthropic_schemas(self) -> list[dict[str, Any]]:
        """Their schemas, for the Anthropic API itself."""
        return [tool.anthropic_schema for tool in self]

    def find(self, name: str) -> MemoryTool | None:
        """Return the tool with a name, or None."""
        return next((tool for tool in self if isinstance(name, str) and tool.name == name), None)

    async def execute(self, name: str, /, *given: Any, **arguments: Any) -> ToolResult:
        """Call the tool with a name; see MemoryTool.execute. An unknown name is a result of status "error", too."""
        tool = self.find(name)
        if tool is not None:
            return await tool.execute(*given, **arguments)
        called = f"there is no tool {one_line(name, 60)!r}" if isinstance(name, str) and name else "no tool is named"
        result = failure(f"{called}: the tools are {', '.join(self.names)}", error_type="NotFound")
        return await finished(result, self._bench, "a tool")

    async def run(self, call: Mapping[str, Any] | Any) -> dict[str, Any]:
        """Carry out one tool call of a model's answer and return the message that answers it. Nothing is raised.

        Args:
            call: a call in the OpenAI shape, its arguments JSON text, a dict or a list, as in ChatReply.tool_calls; or
                a tool_use block of the Anthropic API. Objects of their own clients will do.

        Returns:
            {"role": "tool", "tool_call_id", "name", "content"}; to a tool_use block a user's message with one
            tool_result block. The content never costs more tokens than create_memory_tools was told.
        """
        read = read_call(call)
        if is_several(call):
            result = failure(
                "give one call at a time: [await tools.run(call) for call in reply.tool_calls]",
                error_type="InvalidInput",
            )
            return read.answer(await finished(result, self._bench, "a tool"))
        return read.answer(await self.execute(read.name, read.arguments))


def create_memory_tools(
    memory: AgentMemory,
    llm: ChatModel | None = None,
    counter: CountsTokens | None = None,
    *,
    result_tokens: int = RESULT_TOKENS,
    names: Iterable[str] | None = None,
    blocks: Iterable[str] | None = None,
) -> MemoryTools:
    """Return the tools by which an agent works on its own memory. Nothing is read or written before one is called.

    load_tool_result, core_memory_append, core_memory_replace, archival_memory_insert, archival_memory_search,
    conversation_search, history_search, save_memory.

    Args:
        memory: whose memory, as db.memory() gives it.
        llm: summarises a memory block that an edit makes larger than its size; None cuts it. What is cut is archived
            as the blocks' MemoryConfig says, either way.
        counter: counts tokens; None for a TokenCounter of cl100k_base.
        result_tokens: the most that the text of a result may cost, 200 to 1,000,000.
        names: only these tools, in the order above.
        blocks: names of memory blocks that a model is told to choose from, such as await memory.blocks.block_configs();
            None leaves the choice to the prompt, where they stand. A block that comes later is found either way.

    Returns:
        A list of MemoryTool that can also run the calls of an answer; see MemoryTools.

    Raises:
        InvalidInput: an argument is not what it must be.
    """
    _check_memory(memory)
    if llm is not None:
        check_model(llm)
    counter = TokenCounter() if counter is None else counter
    check_part(counter, "counter", "count(text)")
    most = check_range(result_tokens, "result_tokens", MIN_RESULT_TOKENS, MAX_RESULT_TOKENS)
    bench = Bench(memory, llm, counter, most)
    recipes = (
        *loading.recipes(),
        *core_memory.recipes(_texts(blocks, "blocks")),
        *archival.recipes(),
        *recalling.recipes(),
        *saving.recipes(),
    )
    wanted = None if names is None else _known(_texts(names, "names"), [recipe.name for recipe in recipes])
    return MemoryTools((MemoryTool(one, bench) for one in recipes if wanted is None or one.name in wanted), bench)


def _check_memory(memory: object) -> None:
    for part in ("manager", "conversation", "facts", "blocks", "archive", "atomic"):
        if not hasattr(type(memory), part) and not hasattr(memory, part):
            raise InvalidInput(f"memory must be what db.memory() gives, not {type(memory).__name__}")
    if isinstance(getattr(memory, "_home", None), Transaction):
        raise InvalidInput(
            "tools await their memory, which a unit must not: make them of db.memory(), outside the unit"
        )


def _known(wanted: list[str], known: list[str]) -> list[str]:
    for name in wanted:
        if name not in known:
            raise InvalidInput(f"names has {name[:60]!r}, which is no tool: choose from {', '.join(known)}")
    return wanted


def _texts(values: Iterable[str] | None, name: str) -> list[str]:
    listed = [] if values is None else check_bulk(iter(values) if isinstance(values, Mapping) else values, name)
    for value in listed:
        if not isinstance(value, str):
            raise InvalidInput(f"{name} must be a list of names, not of {type(value).__name__}")
        check_key(value, name)
    return list(dict.fromkeys(listed))
