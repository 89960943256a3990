"""What help() shows of a model: fields, types and defaults, and nothing of how they are checked."""

from __future__ import annotations

import inspect
import pydoc

import pytest

import memdb
from memdb.layers.models import Model

MODELS = sorted(
    name for name in memdb.__all__ if isinstance(found := getattr(memdb, name), type) and issubclass(found, Model)
)


@pytest.mark.parametrize("name", MODELS)
def test_the_signature_of_a_model_is_plain(name):
    model = getattr(memdb, name)
    drawn = inspect.signature(model)
    assert list(drawn.parameters) == list(model.model_fields)
    assert [word for word in ("Annotated", "Validator", "<function", "Undefined") if word in str(drawn)] == []
    required = [one.name for one in drawn.parameters.values() if one.default is one.empty]
    assert required == [name for name, field in model.model_fields.items() if field.is_required()]


def test_the_signatures_that_people_look_up():
    assert "BlockConfig(*, size: int, priority: int = 1, description: str = '', initial_value: str = '')" in (
        pydoc.render_doc(memdb.BlockConfig, renderer=pydoc.plaintext)
    )
    drawn = str(inspect.signature(memdb.MemoryConfig))
    assert "retrieval_k: int = 5, score_threshold: float | None = None, total_size: int | None = None" in drawn
    with pytest.raises(AttributeError):
        _ = memdb.MemoryConfig().__signature__
