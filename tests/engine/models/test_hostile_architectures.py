"""Files of every architecture whose keys or tensors contradict each other: refused by name, or run in their memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Engine, EngineConfig
from engine.errors import ColibriError
from engine.gguf import GGUFReader
from tests.engine.test_hostile_models import rewritten
from tests.support.tiny_models import TINY_MODELS, tiny_model

CONFIG = EngineConfig(context_length=96, max_batch_tokens=40, max_sequences=2, threads=1)
VALUES: list[Any] = [
    0,
    1,
    2,
    3,
    7,
    16,
    48,
    80,
    160,
    1 << 20,
    (1 << 31) - 1,
    -1,
    0.0,
    -1.0,
    0.3,
    1e30,
    math.nan,
    math.inf,
]
VALUES += [True, False, "text", "yarn", [1], [0, 0, 0, 0], [1, 2, 1, 2]]


def keys_of(name: str) -> list[str]:
    with GGUFReader.open(tiny_model(name)) as reader:
        architecture = reader.metadata["general.architecture"]
        return sorted(key for key in reader.metadata if key.startswith(f"{architecture}."))


def tensors_of(architecture: str) -> list[str]:
    with GGUFReader.open(tiny_model(architecture)) as reader:
        return sorted(reader.tensors)


def opens_and_runs(path: Path) -> bool:
    """False if the file is refused; anything else than one of our errors fails the test."""
    try:
        with Engine.open(path, CONFIG) as engine:
            engine.logits(list(range(50)))
            return True
    except ColibriError:
        return False


@pytest.mark.parametrize("architecture", sorted(TINY_MODELS))
@settings(max_examples=40)
@given(data=st.data())
def test_no_value_of_a_key_leads_a_kernel_astray(tmp_path: Path, architecture: str, data: st.DataObject) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from(keys_of(architecture)), st.sampled_from(VALUES), max_size=2))
    opens_and_runs(rewritten(tmp_path / "model.gguf", architecture, changed))


@pytest.mark.parametrize("architecture", sorted(TINY_MODELS))
def test_a_missing_tensor_is_named_or_may_be_missing(tmp_path: Path, architecture: str) -> None:
    optional = ("bias", "rope_f", "output.weight", "attn_q_norm", "attn_k_norm", "blk.2.")
    for name in tensors_of(architecture)[:: 1 + len(tensors_of(architecture)) // 40]:
        path = rewritten(tmp_path / "model.gguf", architecture, missing=(name,))
        try:
            Engine.open(path, CONFIG).close()
        except ColibriError as error:
            stem = name.removesuffix(".weight").removesuffix("_exps")
            older = (
                stem.replace("attn_k_b", "attn_kv_b").replace("attn_v_b", "attn_kv_b").replace("ssm_ba", "ssm_alpha")
            )
            others = "knows no use for" in str(error) and stem.rpartition("_")[2] in str(error)  # of the same kind
            assert stem in str(error) or older in str(error) or others, name
        else:
            assert any(part in name for part in optional), name


@pytest.mark.parametrize("architecture", sorted(TINY_MODELS))
def test_what_is_not_a_number_ends_in_an_error_or_shows(tmp_path: Path, architecture: str) -> None:
    """A NaN in the embedding of a token reaches its logits, through states and pages, and those of nobody before it."""
    with GGUFReader.open(tiny_model(architecture)) as reader:
        tensor = reader.tensors["token_embd.weight"]
        data = np.array(reader.data(tensor.name)).reshape(tensor.shape[0], -1)
        data[77, :2] = np.array([np.nan], np.float16).view(np.uint8)  # the scale of its first block
    path = rewritten(tmp_path / "model.gguf", architecture, data={"token_embd.weight": data.reshape(-1)})
    with Engine.open(path, CONFIG) as engine:
        tied = engine.info.n_vocab and not np.isfinite(engine.logits([5])[0, 77])
        logits = engine.logits([5, 6, 77, 8, 9])
    others = np.delete(logits, 77, axis=1) if tied else logits
    assert np.isfinite(others[:2]).all()
    assert np.isnan(others[2]).all()
