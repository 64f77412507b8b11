"""A model that is run layer by layer, each opened by itself, computes the same bits as the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine import Engine
from engine.span import Span
from tests.engine.compact import MIXTRAL, NAMES, model_path, small_config
from tests.support.tiny_models import TINY_MODELS

IDS = [int(i) for i in np.random.default_rng(3).integers(3, 500, 70)]
CONFIG = small_config(max_sequences=1, kv_type="f32")


@pytest.mark.parametrize("name", [*NAMES, *TINY_MODELS])
def test_layers_one_by_one_give_the_bits_of_the_whole(name: str) -> None:
    path = model_path(name)
    with Engine.open(path, CONFIG) as engine:
        whole, n_layers = engine.evaluate(IDS), engine.info.n_layers
        whole_bytes = engine.memory.weights_bytes
    hidden, routes, most_bytes = None, [], 0
    for layer in range(n_layers):
        with Span(path, (layer, layer + 1), CONFIG) as span:
            result = span.run(IDS, hidden)
            most_bytes = max(most_bytes, span.memory.weights_bytes)
        hidden = result.hidden
        routes.append(result.experts)
    assert hidden is not None
    with Span(path, (n_layers, n_layers), CONFIG) as output:
        logits = np.concatenate(list(output.logits(IDS, hidden)))
    np.testing.assert_array_equal(logits, whole.logits)
    np.testing.assert_array_equal(np.concatenate(routes), whole.experts)
    assert most_bytes < whole_bytes


def test_sums_of_inputs_are_those_of_the_whole() -> None:
    path, config = model_path(MIXTRAL), replace(CONFIG, measures_inputs=True)
    with Engine.open(path, config) as engine:
        engine.evaluate(IDS)
        whole, n_layers = engine.input_sums(), engine.info.n_layers
    hidden, found = None, {}
    for layer in range(n_layers):
        with Span(path, (layer, layer + 1), config) as span:
            hidden = span.run(IDS, hidden).hidden
            found |= span.input_sums()
    assert hidden is not None
    with Span(path, (n_layers, n_layers), config) as output:
        list(output.logits(IDS, hidden))
        found |= output.input_sums()
    assert found.keys() == whole.keys()
    for name, inputs in whole.items():
        np.testing.assert_array_equal(found[name].sums, inputs.sums)
