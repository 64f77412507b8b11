"""gpt-oss: biases everywhere, attention sinks, experts in MXFP4 (or BF16) with gate and up rows alternating."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, expert_keys, heads_of
from engine.convert.common_tensors import attention, norms, router
from engine.convert.matrices import Matrix, Picked, Transposed
from engine.convert.model_map import Layer, ModelMap, Reshaped
from engine.convert.permutations import every_second
from engine.convert.sizes import Size
from engine.convert.stored import Mxfp4, PickedPacked
from engine.errors import UnsupportedModelError
from engine.gguf.tensor_types import TensorType

ARCHITECTURE = "gpt-oss"
CLASSES = ("GptOssForCausalLM",)

_BLOCK = 32
_WINDOW_PERIOD = 2


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")
    bias = m.config.flag("attention_bias", True)
    for name, known in (("swiglu_limit", 7.0), ("swiglu_alpha", 1.702)):
        if m.config.number(name, known) != known:
            raise UnsupportedModelError(
                f"{m.config.path}: expected {name} = {known}, which is what the GGUF architecture gpt-oss means, found "
                f"{m.config.number(name)}."
            )
    kinds = m.config.texts("layer_types", m.n_layers)
    usual = ["full_attention" if layer % _WINDOW_PERIOD else "sliding_attention" for layer in range(m.n_layers)]
    if kinds is not None and kinds != usual:
        raise UnsupportedModelError(
            f"{m.config.path}: expected layer_types with a sliding window in every second layer, the first included, "
            f"which is what the GGUF architecture gpt-oss means, found {kinds!r:.100}."
        )

    basic_keys(m)
    n_experts = expert_keys(m)
    m.key("attention.sliding_window", m.config.size("sliding_window"))
    m.key("expert_feed_forward_length", n)

    m.embeddings()
    for layer in m.layers():
        norms(layer, after_attention="post_attention_norm.weight")
        attention(layer, heads, bias=bias, output_bias=bias)
        layer.tensor("attn_sinks.weight", "self_attn.sinks", (heads.n_heads,))
        router(layer, n_experts, "mlp.router.weight")
        layer.tensor("ffn_gate_inp.bias", "mlp.router.bias", (n_experts,))
        _biases(layer, n_experts, n)
        if layer.has("mlp.experts.gate_up_proj_blocks"):
            _packed_experts(layer, n_experts, n)
        else:
            _plain_experts(layer, n_experts, n)


def _biases(layer: Layer, n_experts: Size, n: Size) -> None:
    m = layer.model
    source = "mlp.experts.gate_up_proj_bias"
    both = Reshaped(m.take(layer.source + source, (n_experts, 2 * n)), (n_experts * 2 * n,))
    for target, first in (("ffn_gate_exps.bias", 0), ("ffn_up_exps.bias", 1)):
        part = Picked(both, every_second(n_experts, 2 * n, first))
        m.add(layer.target + target, (n_experts, n), part, (layer.source + source,))
    layer.tensor("ffn_down_exps.bias", "mlp.experts.down_proj_bias", (n_experts, m.hidden))


def _packed_experts(layer: Layer, n_experts: Size, n: Size) -> None:
    """MXFP4: output rows first; blocks of 32 values go over as they are."""
    m = layer.model
    both = _mxfp4(layer, "mlp.experts.gate_up_proj", n_experts, 2 * n, m.hidden)
    sources = (f"{layer.source}mlp.experts.gate_up_proj_blocks",)
    for target, first in (("ffn_gate_exps.weight", 0), ("ffn_up_exps.weight", 1)):
        rows = every_second(n_experts, 2 * n, first)
        shape = (n_experts, n, m.hidden)
        m.add(layer.target + target, shape, Picked(both, rows), sources, PickedPacked(both, rows), TensorType.MXFP4)
    down = _mxfp4(layer, "mlp.experts.down_proj", n_experts, m.hidden, n)
    sources = (f"{layer.source}mlp.experts.down_proj_blocks",)
    m.add(f"{layer.target}ffn_down_exps.weight", (n_experts, m.hidden, n), down, sources, down, TensorType.MXFP4)


def _mxfp4(layer: Layer, source: str, n_experts: Size, n_rows: Size, n_columns: Size) -> Mxfp4:
    m = layer.model
    if n_columns % _BLOCK:
        raise m.config.wrong(n_columns.label, f"a multiple of {_BLOCK}", int(n_columns))
    n_blocks = Size(n_columns // _BLOCK, f"{n_columns.label} / {_BLOCK}")
    blocks = m.find(f"{layer.source}{source}_blocks", (n_experts, n_rows, n_blocks, 16))
    scales = m.find(f"{layer.source}{source}_scales", (n_experts, n_rows, n_blocks))
    for tensor in (blocks, scales):
        if tensor.dtype != "U8":
            raise UnsupportedModelError(f"{tensor.path}: expected U8 in {tensor.name}, found {tensor.dtype}.")
    return Mxfp4(m.checkpoint, blocks, scales)


def _plain_experts(layer: Layer, n_experts: Size, n: Size) -> None:
    """BF16: inputs first, and the columns of gate and up alternate."""
    m = layer.model
    source = f"{layer.source}mlp.experts.gate_up_proj"
    both = Transposed(m.take(source, (n_experts, m.hidden, 2 * n)), m.hidden)
    for target, first in (("ffn_gate_exps.weight", 0), ("ffn_up_exps.weight", 1)):
        part = Picked(both, every_second(n_experts, 2 * n, first), row_block=n)
        m.add(layer.target + target, (n_experts, n, m.hidden), part, (source,))
    source = f"{layer.source}mlp.experts.down_proj"
    down: Matrix = Transposed(m.take(source, (n_experts, n, m.hidden)), n)
    m.add(f"{layer.target}ffn_down_exps.weight", (n_experts, m.hidden, n), down, (source,))
