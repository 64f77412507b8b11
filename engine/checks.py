"""Checks of a model file that need only its header: whether its parts agree, whether this version opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from engine.config import EngineConfig
from engine.convert.beside import CONFIG, contradictions
from engine.errors import ColibriError
from engine.gguf import GGUFReader, TensorType
from engine.kernels.library import KernelLibrary
from engine.kernels.tiers import choose_tier
from engine.model import measure_memory
from engine.models import architecture
from engine.models.hyperparameters import Hyperparameters
from engine.models.keys import Keys
from engine.tokenizer import ChatTemplate, Tokenizer

_ROUTER = "ffn_gate_inp.weight"
_EXPERTS = "_exps.weight"
_MOST_LAYERS = 1 << 16
_PAGE_BYTES = 4096  # of memory, and what Colibri's own files are aligned to
_EXACT_ROUTERS = (TensorType.F32, TensorType.F16, TensorType.BF16)
_CONVERSATION = [
    {"role": "system", "content": "An instruction."},
    {"role": "user", "content": "A question."},
    {"role": "assistant", "content": "An answer."},
    {"role": "user", "content": "Another question."},
]


class Outcome(StrEnum):
    """`NOTED`: the model works, but somebody may want to know."""

    PASSED = "passed"
    NOTED = "noted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """`name`: what was looked at. `finding`: what was found, and where it failed what was expected."""

    name: str
    outcome: Outcome
    finding: str


def check_model(reader: GGUFReader) -> list[Check]:
    """All checks of an open file, in the order in which they are shown. Reads its header, not its weights."""
    checks = []
    for name, look in _CHECKS.items():
        try:
            found = look(reader)
        except ColibriError as error:
            found = (Outcome.FAILED, str(error))
        if found is not None:
            checks.append(Check(name, *found))
    return checks


_Found = tuple[Outcome, str] | None  # None: the question does not arise


def _passed(finding: str) -> _Found:
    return Outcome.PASSED, finding


def _noted(finding: str) -> _Found:
    return Outcome.NOTED, finding


def _failed(finding: str) -> _Found:
    return Outcome.FAILED, finding


def _architecture(reader: GGUFReader) -> _Found:
    name = Keys(reader.metadata).architecture
    try:
        architecture(name)
    except ColibriError as error:
        return _noted(str(error))  # the file may be sound
    return _passed(f"{name}, which this version runs")


def _hyperparameters(reader: GGUFReader) -> _Found:
    if not _is_known(reader):
        return None
    hyper = Hyperparameters.read(Keys(reader.metadata))
    return _passed(
        f"{hyper.n_heads} heads share {hyper.n_kv_heads} keys and values of {hyper.head_dim} each, of "
        f"{hyper.n_embedding} values a token"
    )


def _tensors(reader: GGUFReader) -> _Found:
    if not _is_known(reader):
        return None
    config = EngineConfig()
    config = replace(config, context_length=min(config.context_length, _training_context(reader)))
    plan = measure_memory(reader.paths[0], config, KernelLibrary(choose_tier("generic")))  # nothing is compiled
    return _passed(
        f"all that the architecture needs are there, of the shapes that the keys ask for: {len(reader.tensors):,}, in "
        f"memory {plan.total_bytes / 1e6:,.0f} MB with a context of {config.context_length:,} tokens"
    )


def _layers(reader: GGUFReader) -> _Found:
    name = reader.metadata.get("general.architecture")
    said, unused = (reader.metadata.get(f"{name}.{key}", 0) for key in ("block_count", "nextn_predict_layers"))
    found = {int(part) for tensor in reader.tensors if (part := _layer(tensor)).isdecimal()}
    if not isinstance(said, int) or not isinstance(unused, int) or not 0 <= unused <= said <= _MOST_LAYERS:
        return _failed(f"block_count is {said}; a number from 1 to {_MOST_LAYERS:,} was expected")
    if missing := sorted(set(range(said - unused)) - found):
        return _failed(f"block_count is {said}, but there are no tensors of layer {_some(missing)}")
    if further := sorted(number for number in found if number >= said):
        return _failed(f"block_count is {said}, but there are tensors of layer {_some(further)}")
    return _passed(f"{len(found)}, numbered without a gap")


def _vocabulary(reader: GGUFReader) -> _Found:
    tokenizer = Tokenizer.from_metadata(reader.metadata)
    for name in ("token_embd.weight", "output.weight"):
        rows = reader.tensors[name].shape[0] if name in reader.tensors else tokenizer.n_vocab
        if rows != tokenizer.n_vocab:
            return _failed(f"{tokenizer.n_vocab:,} tokens, but {name} has {rows:,} rows")
    return _passed(f"{tokenizer.n_vocab:,} tokens, as many as the embedding has rows")


def _end_token(reader: GGUFReader) -> _Found:
    tokenizer = Tokenizer.from_metadata(reader.metadata)
    said = reader.metadata.get("tokenizer.ggml.eos_token_id")
    if isinstance(said, int) and not 0 <= said < tokenizer.n_vocab:
        return _failed(f"tokenizer.ggml.eos_token_id is {said}, but the vocabulary has {tokenizer.n_vocab:,} tokens")
    if not tokenizer.end_ids:
        return _noted("none is known; an answer ends only at its length limit")
    return _passed(", ".join(repr(tokenizer.token_text(token)) for token in sorted(tokenizer.end_ids)))


def _chat_template(reader: GGUFReader) -> _Found:
    template = ChatTemplate.from_metadata(reader.metadata, Tokenizer.from_metadata(reader.metadata))
    if template.source is None:
        return _noted("none: a base model, which continues texts and holds no conversation")
    try:
        text = template.render(_CONVERSATION)
    except ColibriError:
        text = template.render(_CONVERSATION[1:])  # some take no instruction
        return _passed(f"renders a conversation ({len(text):,} characters), but takes no instruction of the system")
    return _passed(f"renders a conversation with an instruction of the system ({len(text):,} characters)")


def _context(reader: GGUFReader) -> _Found:
    if not _is_known(reader):
        return None
    hyper = Hyperparameters.read(Keys(reader.metadata))
    trained = reader.metadata.get(f"{hyper.architecture}.rope.scaling.original_context_length")
    if not isinstance(trained, int) or trained >= hyper.training_context:
        return _passed(f"{hyper.training_context:,} tokens")
    return _passed(f"{hyper.training_context:,} tokens, stretched from {trained:,} ({hyper.rope_scaling.kind})")


def _experts(reader: GGUFReader) -> _Found:
    name = reader.metadata.get("general.architecture")
    n_experts, top_k = (reader.metadata.get(f"{name}.{key}") for key in ("expert_count", "expert_used_count"))
    stacked = [tensor for tensor in reader.tensors.values() if tensor.name.endswith(_EXPERTS)]
    if not n_experts:
        return _failed(f"{stacked[0].name} is there, but the file says no {name}.expert_count") if stacked else None
    for tensor in stacked:
        if tensor.shape[0] != n_experts:
            return _failed(f"{name}.expert_count is {n_experts}, but {tensor.name} holds {tensor.shape[0]}")
    if not isinstance(top_k, int) or not 1 <= top_k <= n_experts:
        return _failed(f"{name}.expert_used_count is {top_k}; a number from 1 to {n_experts} was expected")
    return _passed(f"{n_experts}, {top_k} of them for each token")


def _routers(reader: GGUFReader) -> _Found:
    n_experts = reader.metadata.get(f"{reader.metadata.get('general.architecture')}.expert_count")
    if not n_experts:
        return None
    routers = {_layer(name): tensor for name, tensor in reader.tensors.items() if name.endswith(f".{_ROUTER}")}
    with_experts = {_layer(name) for name in reader.tensors if name.endswith(_EXPERTS)}
    if missing := sorted(with_experts - routers.keys(), key=int):
        return _failed(f"experts, but no router (blk.N.{_ROUTER}), in layer {_some(missing)}")
    if not routers:
        return _failed(f"no layer has a router (a tensor named blk.N.{_ROUTER})")
    wrong = next((router for router in routers.values() if router.shape[0] != n_experts), None)
    if wrong:
        return _failed(f"{wrong.name} chooses among {wrong.shape[0]} experts, but there are {n_experts}")
    return _passed(f"one in each layer with experts, {len(routers)} in all")


def _router_precision(reader: GGUFReader) -> _Found:
    routers = [tensor for name, tensor in reader.tensors.items() if name.endswith(f".{_ROUTER}")]
    if not routers:
        return None
    names = ", ".join(sorted({router.type.name for router in routers}))
    if coarse := [router for router in routers if router.type not in _EXACT_ROUTERS]:
        return _noted(f"{names}: {len(coarse)} are quantised, and may choose other experts than the source's")
    return _passed(names)


def _alignment(reader: GGUFReader) -> _Found:
    if not any(tensor.offset % _PAGE_BYTES for tensor in reader.tensors.values()):
        return _passed(f"every tensor begins at a multiple of {_PAGE_BYTES:,} bytes")
    return _passed(f"to {reader.alignment:,} bytes, as is usual; files that Colibri writes: {_PAGE_BYTES:,}")


def _config_beside(reader: GGUFReader) -> _Found:
    if not (reader.paths[0].absolute().parent / CONFIG).exists():
        return None
    problems = contradictions(reader.paths[0], reader.metadata)
    return _failed("; ".join(problems)) if problems else _passed("says what the file says")


def _licence(reader: GGUFReader) -> _Found:
    names = (reader.metadata.get(f"general.license{suffix}") for suffix in (".name", ""))
    licence = next((name for name in names if isinstance(name, str) and name), None)
    return _passed(licence) if licence else _noted("the file does not say it; look where it was published")


def _training_context(reader: GGUFReader) -> int:
    return Hyperparameters.read(Keys(reader.metadata)).training_context


def _is_known(reader: GGUFReader) -> bool:
    found = _architecture(reader)
    return found is not None and found[0] is Outcome.PASSED


def _layer(name: str) -> str:
    parts = name.split(".", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "blk" else ""


def _some(items: list[Any]) -> str:
    return ", ".join(map(str, items[:4])) + (f" and {len(items) - 4} more" if len(items) > 4 else "")


_CHECKS: Mapping[str, Callable[[GGUFReader], _Found]] = {
    "architecture": _architecture,
    "heads": _hyperparameters,
    "layers": _layers,
    "tensors": _tensors,
    "vocabulary": _vocabulary,
    "end of an answer": _end_token,
    "chat template": _chat_template,
    "context": _context,
    "experts": _experts,
    "routers": _routers,
    "router precision": _router_precision,
    "alignment": _alignment,
    CONFIG: _config_beside,
    "licence": _licence,
}
