"""Checks of a model file that need only its header: whether its parts agree, whether this version opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from engine.config import EngineConfig
from engine.convert.beside import CONFIG, contradictions
from engine.errors import ColibriError
from engine.gguf import GGUFReader, TensorType
from engine.kernels.library import KernelLibrary
from engine.kernels.tiers import choose_tier
from engine.message import Message, text, verbatim
from engine.model import measure_memory
from engine.models import ARCHITECTURES
from engine.models.hyperparameters import Hyperparameters
from engine.models.keys import Keys
from engine.tokenizer import ChatTemplate, Tokenizer

_ROUTER = "ffn_gate_inp.weight"
_EXPERTS = "_exps.weight"
_MOST_LAYERS = 1 << 16
_MOST_NAMED = 4  # layers, where a finding names them
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
    """`name`: what was looked at. `findings`: what was found, and where it failed what was expected; mostly one.

    Both are English, and templates that can be translated in the context engine.message.MODEL_CHECKS.
    """

    name: str
    outcome: Outcome
    findings: tuple[Message, ...]

    @property
    def finding(self) -> str:
        """The findings in English, in one line."""
        return "; ".join(map(str, self.findings))


def check_model(reader: GGUFReader) -> list[Check]:
    """All checks of an open file, in the order in which they are shown. Reads its header, not its weights."""
    checks = []
    for name, look in _CHECKS:
        try:
            found = look(reader)
        except ColibriError as error:
            found = (Outcome.FAILED, verbatim(str(error)))
        if found is not None:
            outcome, *findings = found
            checks.append(Check(str(name), outcome, tuple(findings)))
    return checks


_Found = tuple[Outcome, *tuple[Message, ...]] | None  # None: the question does not arise


def _passed(finding: Message) -> _Found:
    return Outcome.PASSED, finding


def _noted(finding: Message) -> _Found:
    return Outcome.NOTED, finding


def _failed(*findings: Message) -> _Found:
    return Outcome.FAILED, *findings


def _architecture(reader: GGUFReader) -> _Found:
    name = Keys(reader.metadata).architecture
    if name not in ARCHITECTURES:  # the file may be sound
        known = ", ".join(sorted(ARCHITECTURES))
        unknown = text("ModelChecks", "this version does not know the architecture {name}; it knows {known}")
        return _noted(unknown.format(name=name, known=known))
    return _passed(text("ModelChecks", "{name}, which this version runs").format(name=name))


def _hyperparameters(reader: GGUFReader) -> _Found:
    if not _is_known(reader):
        return None
    hyper = Hyperparameters.read(Keys(reader.metadata))
    found = text(
        "ModelChecks", "{heads} heads share {kv_heads} keys and values of {size} each, of {width} values a token"
    )
    return _passed(
        found.format(heads=hyper.n_heads, kv_heads=hyper.n_kv_heads, size=hyper.head_dim, width=hyper.n_embedding)
    )


def _tensors(reader: GGUFReader) -> _Found:
    if not _is_known(reader):
        return None
    config = EngineConfig()
    config = replace(config, context_length=min(config.context_length, _training_context(reader)))
    plan = measure_memory(reader.paths[0], config, KernelLibrary(choose_tier("generic")))  # nothing is compiled
    found = text(
        "ModelChecks",
        "all that the architecture needs are there, of the shapes that the keys ask for: {n:,}, in memory "
        "{megabytes:,.0f} MB with a context of {context:,} tokens",
    )
    return _passed(found.format(n=len(reader.tensors), megabytes=plan.total_bytes / 1e6, context=config.context_length))


def _layers(reader: GGUFReader) -> _Found:
    name = reader.metadata.get("general.architecture")
    said, unused = (reader.metadata.get(f"{name}.{key}", 0) for key in ("block_count", "nextn_predict_layers"))
    found = {int(part) for tensor in reader.tensors if (part := _layer(tensor)).isdecimal()}
    if not isinstance(said, int) or not isinstance(unused, int) or not 0 <= unused <= said <= _MOST_LAYERS:
        wrong = text("ModelChecks", "block_count is {said}; a number from 1 to {most:,} was expected")
        return _failed(wrong.format(said=said, most=_MOST_LAYERS))
    if missing := sorted(set(range(said - unused)) - found):
        lacks = text("ModelChecks", "block_count is {said}, but there are no tensors of layer {layers}")
        return _failed(lacks.format(said=said, layers=_some(missing)))
    if further := sorted(number for number in found if number >= said):
        has_more = text("ModelChecks", "block_count is {said}, but there are tensors of layer {layers}")
        return _failed(has_more.format(said=said, layers=_some(further)))
    return _passed(text("ModelChecks", "{n}, numbered without a gap").format(n=len(found)))


def _vocabulary(reader: GGUFReader) -> _Found:
    tokenizer = Tokenizer.from_metadata(reader.metadata)
    for name in ("token_embd.weight", "output.weight"):
        rows = reader.tensors[name].shape[0] if name in reader.tensors else tokenizer.n_vocab
        if rows != tokenizer.n_vocab:
            wrong = text("ModelChecks", "{n:,} tokens, but {name} has {rows:,} rows")
            return _failed(wrong.format(n=tokenizer.n_vocab, name=name, rows=rows))
    found = text("ModelChecks", "{n:,} tokens, as many as the embedding has rows")
    return _passed(found.format(n=tokenizer.n_vocab))


def _end_token(reader: GGUFReader) -> _Found:
    tokenizer = Tokenizer.from_metadata(reader.metadata)
    said = reader.metadata.get("tokenizer.ggml.eos_token_id")
    if isinstance(said, int) and not 0 <= said < tokenizer.n_vocab:
        wrong = text("ModelChecks", "tokenizer.ggml.eos_token_id is {said}, but the vocabulary has {n:,} tokens")
        return _failed(wrong.format(said=said, n=tokenizer.n_vocab))
    if not tokenizer.end_ids:
        return _noted(text("ModelChecks", "none is known; an answer ends only at its length limit"))
    return _passed(verbatim(", ".join(repr(tokenizer.token_text(token)) for token in sorted(tokenizer.end_ids))))


def _chat_template(reader: GGUFReader) -> _Found:
    template = ChatTemplate.from_metadata(reader.metadata, Tokenizer.from_metadata(reader.metadata))
    if template.source is None:
        return _noted(text("ModelChecks", "none: a base model, which continues texts and holds no conversation"))
    try:
        rendered = template.render(_CONVERSATION)
        found = text("ModelChecks", "renders a conversation with an instruction of the system ({n:,} characters)")
    except ColibriError:
        rendered = template.render(_CONVERSATION[1:])  # some take no instruction
        found = text("ModelChecks", "renders a conversation ({n:,} characters), but takes no instruction of the system")
    return _passed(found.format(n=len(rendered)))


def _context(reader: GGUFReader) -> _Found:
    if not _is_known(reader):
        return None
    hyper = Hyperparameters.read(Keys(reader.metadata))
    trained = reader.metadata.get(f"{hyper.architecture}.rope.scaling.original_context_length")
    n = hyper.training_context
    if not isinstance(trained, int) or trained >= n:
        return _passed(text("ModelChecks", "{n:,} tokens").format(n=n))
    found = text("ModelChecks", "{n:,} tokens, stretched from {trained:,} ({kind})")
    return _passed(found.format(n=n, trained=trained, kind=hyper.rope_scaling.kind))


def _experts(reader: GGUFReader) -> _Found:
    name = reader.metadata.get("general.architecture")
    n_experts, top_k = (reader.metadata.get(f"{name}.{key}") for key in ("expert_count", "expert_used_count"))
    stacked = [tensor for tensor in reader.tensors.values() if tensor.name.endswith(_EXPERTS)]
    if not n_experts:
        unsaid = text("ModelChecks", "{tensor} is there, but the file says no {name}.expert_count")
        return _failed(unsaid.format(tensor=stacked[0].name, name=name)) if stacked else None
    for tensor in stacked:
        if tensor.shape[0] != n_experts:
            other = text("ModelChecks", "{name}.expert_count is {n}, but {tensor} holds {found}")
            return _failed(other.format(name=name, n=n_experts, tensor=tensor.name, found=tensor.shape[0]))
    if not isinstance(top_k, int) or not 1 <= top_k <= n_experts:
        wrong = text("ModelChecks", "{name}.expert_used_count is {top_k}; a number from 1 to {n} was expected")
        return _failed(wrong.format(name=name, top_k=top_k, n=n_experts))
    return _passed(text("ModelChecks", "{n}, {top_k} of them for each token").format(n=n_experts, top_k=top_k))


def _routers(reader: GGUFReader) -> _Found:
    n_experts = reader.metadata.get(f"{reader.metadata.get('general.architecture')}.expert_count")
    if not n_experts:
        return None
    routers = {_layer(name): tensor for name, tensor in reader.tensors.items() if name.endswith(f".{_ROUTER}")}
    with_experts = {_layer(name) for name in reader.tensors if name.endswith(_EXPERTS)}
    if missing := sorted(with_experts - routers.keys(), key=int):
        lacks = text("ModelChecks", "experts, but no router (blk.N.{router}), in layer {layers}")
        return _failed(lacks.format(router=_ROUTER, layers=_some(missing)))
    if not routers:
        none = text("ModelChecks", "no layer has a router (a tensor named blk.N.{router})")
        return _failed(none.format(router=_ROUTER))
    wrong = next((router for router in routers.values() if router.shape[0] != n_experts), None)
    if wrong:
        other = text("ModelChecks", "{router} chooses among {found} experts, but there are {n}")
        return _failed(other.format(router=wrong.name, found=wrong.shape[0], n=n_experts))
    return _passed(text("ModelChecks", "one in each layer with experts, {n} in all").format(n=len(routers)))


def _router_precision(reader: GGUFReader) -> _Found:
    routers = [tensor for name, tensor in reader.tensors.items() if name.endswith(f".{_ROUTER}")]
    if not routers:
        return None
    names = ", ".join(sorted({router.type.name for router in routers}))
    if coarse := [router for router in routers if router.type not in _EXACT_ROUTERS]:
        found = text("ModelChecks", "{names}: {n} are quantised, and may choose other experts than the source's")
        return _noted(found.format(names=names, n=len(coarse)))
    return _passed(verbatim(names))


def _alignment(reader: GGUFReader) -> _Found:
    if not any(tensor.offset % _PAGE_BYTES for tensor in reader.tensors.values()):
        whole = text("ModelChecks", "every tensor begins at a multiple of {n:,} bytes")
        return _passed(whole.format(n=_PAGE_BYTES))
    found = text("ModelChecks", "to {n:,} bytes, as is usual; files that Colibri writes: {own:,}")
    return _passed(found.format(n=reader.alignment, own=_PAGE_BYTES))


def _config_beside(reader: GGUFReader) -> _Found:
    if not (reader.paths[0].absolute().parent / CONFIG).exists():
        return None
    problems = contradictions(reader.paths[0], reader.metadata)
    return _failed(*problems) if problems else _passed(text("ModelChecks", "says what the file says"))


def _licence(reader: GGUFReader) -> _Found:
    names = (reader.metadata.get(f"general.license{suffix}") for suffix in (".name", ""))
    licence = next((name for name in names if isinstance(name, str) and name), None)
    if licence is None:
        return _noted(text("ModelChecks", "the file does not say it; look where it was published"))
    return _passed(verbatim(licence))


def _training_context(reader: GGUFReader) -> int:
    return Hyperparameters.read(Keys(reader.metadata)).training_context


def _is_known(reader: GGUFReader) -> bool:
    found = _architecture(reader)
    return found is not None and found[0] is Outcome.PASSED


def _layer(name: str) -> str:
    parts = name.split(".", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "blk" else ""


def _some(items: list[Any]) -> Message:
    shown = ", ".join(map(str, items[:_MOST_NAMED]))
    if len(items) <= _MOST_NAMED:
        return verbatim(shown)
    return text("ModelChecks", "{items} and {n} more").format(items=shown, n=len(items) - _MOST_NAMED)


_CHECKS: tuple[tuple[Message, Callable[[GGUFReader], _Found]], ...] = (
    (text("ModelChecks", "architecture"), _architecture),
    (text("ModelChecks", "heads"), _hyperparameters),
    (text("ModelChecks", "layers"), _layers),
    (text("ModelChecks", "tensors"), _tensors),
    (text("ModelChecks", "vocabulary"), _vocabulary),
    (text("ModelChecks", "end of an answer"), _end_token),
    (text("ModelChecks", "chat template"), _chat_template),
    (text("ModelChecks", "context"), _context),
    (text("ModelChecks", "experts"), _experts),
    (text("ModelChecks", "routers"), _routers),
    (text("ModelChecks", "router precision"), _router_precision),
    (text("ModelChecks", "alignment"), _alignment),
    (verbatim(CONFIG), _config_beside),
    (text("ModelChecks", "licence"), _licence),
)
