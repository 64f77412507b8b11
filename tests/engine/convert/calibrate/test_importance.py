"""Importance of inputs from sums and counts: shrunk for rare experts, and as files of both formats."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from engine.convert.calibrate import ImportanceMatrix, TensorInputs, read_importance, write_importance
from engine.errors import ModelFormatError
from tests.engine.compact import LLAMA, model_path

EXPERTS = "blk.0.ffn_up_exps.weight"


def matrix(sums: object, counts: object, name: str = EXPERTS) -> ImportanceMatrix:
    inputs = TensorInputs(np.array(sums, np.float32), np.array(counts, np.float32))
    return ImportanceMatrix({name: inputs}, ("a text",), 3, 512)


def test_an_expert_that_was_never_chosen_gets_its_layers_importance() -> None:
    weights = matrix([[4000, 8000], [0, 0]], [1000, 0]).of(EXPERTS, 2)
    assert weights is not None
    np.testing.assert_allclose(weights[1], [4, 8])


def test_the_more_inputs_an_expert_had_the_more_it_is_believed() -> None:
    distances = []
    for n in (1, 32, 10_000):
        weights = matrix([[1000.0, 1000.0], [9.0 * n, 1.0 * n]], [1000, n]).of(EXPERTS, 2)
        assert weights is not None
        distances.append(abs(weights[1, 0] - 9))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.05


def test_no_input_weighs_nothing() -> None:
    weights = matrix([[0.0, 500.0]], [100], "output.weight").of("output.weight", 2)
    assert weights is not None
    assert 0 < weights[0, 0] < weights[0, 1] / 1000


def test_a_tensor_that_was_not_measured_or_only_zeros_has_none() -> None:
    assert matrix([[1.0, 2.0]], [1]).of("blk.9.attn_q.weight", 2) is None
    assert matrix([[0.0, 0.0]], [10]).of(EXPERTS, 2) is None
    assert matrix([[0.0, 0.0]], [0]).of(EXPERTS, 2) is None


def test_experts_in_tensors_of_their_own_are_found() -> None:
    assert matrix([[1.0, 2.0]], [1]).of("blk.0.ffn_up.3.weight", 2) is not None


def test_another_models_matrix_is_refused() -> None:
    with pytest.raises(ModelFormatError, match=r"2 inputs .* 3"):
        matrix([[1.0, 2.0]], [1]).of(EXPERTS, 3)


@given(
    sums=arrays.arrays(np.float32, (3, 4), elements=st.floats(0, 1e6, width=32)),
    counts=arrays.arrays(np.float32, 3, elements=st.integers(0, 1000).map(float)),
)
def test_a_written_file_reads_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, sums: np.ndarray, counts: np.ndarray
) -> None:
    path = write_importance(matrix(sums, counts), tmp_path_factory.mktemp("i") / "i.gguf")
    found = read_importance(path)
    np.testing.assert_array_equal(found.tensors[EXPERTS].sums, sums)
    np.testing.assert_array_equal(found.tensors[EXPERTS].counts, counts)
    assert (found.datasets, found.n_chunks, found.chunk_tokens) == (("a text",), 3, 512)


def test_the_gguf_package_reads_it_in_the_fields_form(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(write_importance(matrix([[1, 2], [3, 4]], [5, 6]), tmp_path / "i.gguf"))
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    np.testing.assert_array_equal(tensors[f"{EXPERTS}.in_sum2"].data, [[1, 2], [3, 4]])
    assert tensors[f"{EXPERTS}.counts"].shape.tolist() == [1, 2]  # fastest first
    assert reader.fields["general.type"].contents() == "imatrix"


def plain(*entries: tuple[bytes, int, list[float]]) -> bytes:
    parts = [struct.pack("<i", len(entries))]
    for name, calls, values in entries:
        parts += [struct.pack("<i", len(name)), name, struct.pack("<ii", calls, len(values))]
        parts.append(np.array(values, "<f4").tobytes())
    return b"".join(parts)


def test_the_older_format_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "old.dat"
    path.write_bytes(plain((EXPERTS.encode(), 2, [20.0, 40.0, 60.0, 80.0])) + struct.pack("<ii", 2, 0))
    weights = read_importance(path).of(EXPERTS, 2)
    assert weights is not None
    assert weights.shape == (2, 2)
    assert weights[0, 0] < weights[0, 1]
    assert weights[0, 0] < weights[1, 0]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\0\0",
        b"hello, this is text",
        plain((b"a.weight", 0, [1.0])),
        plain((b"a.weight", 1, [-1.0])),
        plain((b"a.weight", 1, [float("nan")])),
        plain((b"a.weight", 1, [1.0]))[:-2],
        plain((b"a.weight", 1, [1.0]), (b"a.weight", 1, [1.0])),
        plain((b"\xff\xfe", 1, [1.0])),
    ],
)
def test_what_is_no_importance_matrix_is_refused(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "bad.dat"
    path.write_bytes(damaged)
    with pytest.raises(ModelFormatError, match=r"bad\.dat"):
        read_importance(path)


def test_a_model_is_refused_as_importance_matrix() -> None:
    with pytest.raises(ModelFormatError, match=r"'llama'.*not a model"):
        read_importance(model_path(LLAMA))


def test_counts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write_importance(matrix([[1, 2], [3, 4]], [5]), tmp_path / "i.gguf")
    with pytest.raises(ModelFormatError, match="a count for each"):
        read_importance(path)
