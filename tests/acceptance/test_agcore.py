"""The acceptance list of the agcore document (its section 6), one test an item, but for what concerns Rust alone.

The items are quoted in the order of the document; what is left out is about cargo and module files. Each test is short:
the layers' own tests go into the depth.
"""

from __future__ import annotations

import inspect
import math
import tomllib
from pathlib import Path

import pytest

import memdb
from memdb import (
    Capacity,
    CompactConfig,
    ConversationMemoryConfig,
    EvictionConfig,
    GraphEntity,
    GraphRelation,
    Hybrid,
    KnowledgePage,
    MemoryFilter,
    MemoryItem,
    NoEviction,
    RecallBased,
    Ttl,
)
from memdb.layers.layer import Layer, _Act

ROOT = Path(__file__).parent.parent.parent


def item(id):
    return MemoryItem(id=id, content=f"note {id}")


async def kept(store):
    return [found.id for found in await store.list()]


async def test_memory_store_has_the_four_methods_of_the_trait(memory):
    """MemoryStore trait 定义清晰的 4 个方法: save, get, delete, list."""
    await memory.items.save(item("a"))
    assert (await memory.items.get("a")).content == "note a"
    assert [found.id for found in await memory.items.list(MemoryFilter(prefix="a", limit=1))] == ["a"]
    await memory.items.delete("a")
    assert await memory.items.get("a") is None


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (NoEviction(), ["a", "b", "c", "d"]),
        (Ttl(ttl_secs=15), ["c", "d"]),
        (Capacity(max_items=3), ["b", "c", "d"]),
        (RecallBased(max_items=2), ["a", "d"]),
        (Hybrid(ttl_secs=25, max_items=1), ["d"]),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_eviction_config_supports_all_five_policies(memory, clock, policy, left):
    """EvictionConfig 支持 None / Ttl / Capacity / RecallBased / Hybrid 五种策略; save() 后正确执行淘汰."""
    for id in "abc":
        await memory.items.save(item(id))
        clock.forward(seconds=10)
    await memory.items.record_recall("a", 0.5)
    await memory.items.with_eviction(EvictionConfig(policy=policy)).save(item("d"))
    assert await kept(memory.items) == left


async def test_recall_based_evicts_by_the_value_of_the_formula(memory, clock):
    """EvictionPolicy::RecallBased 按记忆价值公式正确计算并淘汰低价值记忆."""
    for id, scores in {"often": [0.1, 0.1, 0.1], "well": [1.0], "poor": [0.1]}.items():
        await memory.items.save(item(id))
        for score in scores:
            await memory.items.record_recall(id, score)
    clock.forward(days=1)
    values = {id: (await memory.items.recall_stats(id)).value(clock.now) for id in ("often", "well", "poor")}
    assert values["often"] == pytest.approx(0.3 * math.log(4) + 0.5 * 0.1 + 0.2 / 2)
    await memory.items.save(item("new"))
    store = memory.items.with_eviction(EvictionConfig(policy=RecallBased(max_items=2)))
    await store.save(item("newer"))
    assert set(await kept(memory.items)) == set(sorted(values, key=values.get)[1:])


async def test_record_recall_counts_recalls_and_scores(memory):
    """InMemoryStore::record_recall() 记录召回次数和评分."""
    await memory.items.save(item("a"))
    for score in (0.5, 0.25):
        await memory.items.record_recall("a", score)
    stats = await memory.items.recall_stats("a")
    assert (stats.recall_count, stats.total_score) == (2, 0.75)


async def test_each_retrieval_counts_what_it_returned(memory):
    """MemoryRetriever 每次检索后调用 record_recall() 更新召回统计."""
    await memory.pages.add_page(KnowledgePage(id="p", title="green tea"))
    await memory.graph.add_entity(GraphEntity(id="e", name="tea"))
    await memory.retriever.retrieve("green tea")
    await memory.retriever.retrieve("green tea")
    assert (await memory.pages.recall_stats("p")).recall_count == 2
    assert (await memory.graph.recall_stats("e")).recall_count == 2


async def test_conversation_memory_supports_sliding_window_and_full(memory):
    """ConversationMemory 支持 sliding window 和 full 两种策略; 达到上限后删除最旧消息条目."""
    full = memory.conversation.configure(ConversationMemoryConfig(strategy="full", max_items=2))
    await full.add_messages([{"role": "user", "content": str(n)} for n in range(5)])
    assert len(await full.messages()) == 5
    window = full.configure(ConversationMemoryConfig(strategy="sliding_window", max_items=3))
    await window.add_message({"role": "user", "content": "5"})
    assert [message.content for message in await window.messages()] == ["3", "4", "5"]


async def test_conversation_memory_compacts_old_tool_results(memory):
    """ConversationMemory 正确复用 llm::compact 的压缩逻辑 (when it is read: stored messages never change)."""
    talk = memory.conversation.configure(
        ConversationMemoryConfig(compact=CompactConfig(context_window=600, reserved_tokens=100, keep_recent=1))
    )
    await talk.add_message({"role": "user", "content": "look"})
    for n in range(2):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        await talk.add_message({"role": "assistant", "content": None, "tool_calls": [call]})
        await talk.add_message({"role": "tool", "tool_call_id": f"c{n}", "content": f"result {n} " * 200})
    first, second = (message for message in await talk.get_history() if message.role == "tool")
    assert len(first.content) < 300
    assert second.content == "result 1 " * 200
    assert (await talk.messages())[2].content == "result 0 " * 200


async def test_knowledge_store_keeps_pages_and_their_index(memory):
    """KnowledgeStore trait 支持页面 CRUD 和 index 维护."""
    await memory.pages.add_page(KnowledgePage(id="p", title="one"))
    await memory.pages.update_page(KnowledgePage(id="p", title="two", summary="changed"))
    assert [(entry.id, entry.title, entry.summary) for entry in await memory.pages.get_index()] == [
        ("p", "two", "changed")
    ]
    await memory.pages.delete_page("p")
    assert await memory.pages.get_index() == []


async def small_graph(memory):
    for id, name in (("a", "StateGraph"), ("b", "LangGraph"), ("c", "Agent")):
        await memory.graph.add_entity(GraphEntity(id=id, name=name, tags=["graph", f"tag-{id}"]))
    for source, target in ("ab", "bc"):
        await memory.graph.add_relation(GraphRelation(source_id=source, target_id=target, relation_type="part_of"))


async def test_knowledge_graph_keeps_entities_and_relations_and_walks_them(memory):
    """KnowledgeGraph trait 支持实体 CRUD、关系管理和图遍历."""
    await small_graph(memory)
    found = await memory.graph.get_related("a", 2)
    assert [(hit.entity.id, hit.distance, hit.score) for hit in found] == [("b", 1, 1 / 2), ("c", 2, 1 / 3)]
    await memory.graph.remove_relation("b", "c", "part_of")
    assert [hit.entity.id for hit in await memory.graph.get_related("a", 2)] == ["b"]
    await memory.graph.remove_entity("b")
    assert await memory.graph.get_related("a", 2) == []
    assert await memory.graph.get_entity("b") is None


async def test_find_tags_by_prefix(memory):
    """KnowledgeGraph::find_tags(prefix) 支持前缀匹配查询已有标签."""
    await small_graph(memory)
    await memory.pages.add_page(KnowledgePage(id="p", title="x", tags=["tag-page"]))
    assert await memory.graph.find_tags("tag-") == ["tag-a", "tag-b", "tag-c", "tag-page"]
    assert await memory.graph.entity_count_by_tag("graph") == 3


async def test_set_entity_tags_replaces_and_truncates(memory):
    """set_entity_tags() 替换全部标签，截断到 max_tags_per_entity; 每个实体的标签数不超过 (默认 8)."""
    await small_graph(memory)
    most = memory.graph.tag_constraints().max_tags_per_entity
    assert most == 8
    await memory.graph.set_entity_tags("a", [f"t{n}" for n in range(20)])
    assert (await memory.graph.get_entity("a")).tags == [f"t{n}" for n in range(8)]
    await memory.graph.add_entity(GraphEntity(id="d", name="d", tags=[f"t{n}" for n in range(20)]))
    assert len((await memory.graph.get_entity("d")).tags) == most


def test_the_rule_to_reuse_tags_is_documented():
    """标签复用原则在方案文档和源码规范中明确，下游实现可据此遵守."""
    assert "Reuse before new" in memdb.KnowledgeGraph.__doc__


async def test_retriever_gives_one_result_of_pages_and_entities(memory):
    """MemoryRetriever 组合 KnowledgeStore + KnowledgeGraph 返回统一检索结果."""
    await small_graph(memory)
    await memory.pages.add_page(KnowledgePage(id="p", title="What a StateGraph is"))
    result = await memory.retriever.retrieve("StateGraph")
    assert {type(found.source) for found in result.items} == {KnowledgePage, GraphEntity}
    assert result.total_found == len(result.items)


def test_nothing_needs_embeddings():
    """无 embedding 相关依赖."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = " ".join(project["dependencies"]).lower()
    assert not any(name in needed for name in ("fastembed", "pgvector", "qdrant", "torch", "sqlite-vec", "numpy"))


def test_errors_say_whether_they_are_recoverable():
    """MemoryError 枚举定义完善，支持 is_recoverable()."""
    kinds = ("NotFound", "AlreadyExists", "StorageError", "SerializationError", "InvalidInput", "GraphError")
    recoverable = {name: getattr(memdb, name)("x").is_recoverable() for name in (*kinds, "RetrievalError")}
    assert {name for name, is_so in recoverable.items() if is_so} == {"NotFound", "RetrievalError"}


def test_everything_public_is_documented():
    """所有公开 API 有文档注释."""
    for name in memdb.__all__:
        value = getattr(memdb, name)
        assert inspect.getdoc(value), name
        if inspect.isclass(value) and issubclass(value, Layer):
            for method, act in vars(value).items():
                if not method.startswith("_") and (isinstance(act, _Act) or inspect.isfunction(act)):
                    assert inspect.getdoc(getattr(value, method)), f"{name}.{method}"


def test_no_file_is_longer_than_300_lines():
    """单个文件不超过 300 行."""
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "memdb").rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 300
    }
    assert long == {}
