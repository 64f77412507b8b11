"""GGUF's name for the way in which a tokenizer.json cuts text into words, found by its expressions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.convert.json_files import list_of
from engine.convert.vocabulary.byte_level import two_parts
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.tokenizer.pre_tokenizers import PRE_TOKENIZERS

_GPT2_NAME = "gpt-2"
_GPT2 = PRE_TOKENIZERS[_GPT2_NAME].expressions[0]
_LATIN_LETTERS = "[A-Za-zµÀ-ÖØ-öø-ƺ"  # how DeepSeek's first list of letters begins
_MAX_DEPTH = 8
_SPELLINGS = str.maketrans({"\r": r"\r", "\n": r"\n", "\t": r"\t"})

# The names that are written; of those that mean the same, the one that most programs know.
_WRITTEN = (
    "gpt-2",
    "smollm",
    "llama-bpe",
    "qwen2",
    "qwen35",
    "gpt-4o",
    "tekken",
    "bailingmoe",
    "seed-coder",
    "deepseek-coder",
    "deepseek-v3",
    "kimi-k2",
    "falcon",
)
# Names of a family's own, where other programs choose by them.
_OF_ARCHITECTURE = {("gpt-2", "olmoe"): "olmo", ("smollm", "granitemoe"): "refact"}
# As llama-bpe, for vocabularies in which a word that is a token may still have to be merged otherwise.
_LLAMA_WITH_MERGES = "smaug-bpe"


def _plain(expressions: tuple[str, ...]) -> tuple[str, ...]:
    """In one of the spellings in which the same is published: line ends written out, no backslash before quotes."""
    spelled = (expression.translate(_SPELLINGS) for expression in expressions)
    return tuple(re.sub(r"\\([\"'])", r"\1", expression).replace(r"\uD7FF", "\ud7ff") for expression in spelled)


_KNOWN = {_plain(PRE_TOKENIZERS[name].expressions): name for name in reversed(_WRITTEN)}
# Published in one step more than it takes.
_CODER = _plain(PRE_TOKENIZERS["deepseek-coder"].expressions)
_KNOWN[(*_CODER[0].split("|"), *_CODER[1:])] = "deepseek-coder"


def pre_tokenizer_name(tokenizer: dict[str, Any], architecture: str, path: Path) -> str:
    """The name for the content of a tokenizer.json whose vocabulary has been read; `architecture` is GGUF's.

    Raises UnsupportedModelError that quotes expressions which are not known here.
    """
    expressions = _plain(_expressions(tokenizer.get("pre_tokenizer"), path))
    name = _KNOWN.get(expressions)
    if name is None and len(expressions) > 2 and expressions[1].startswith(rf"\s?{_LATIN_LETTERS}"):
        name = "deepseek-llm"
    if name is None:
        raise UnsupportedModelError(
            f"{path}: text is cut into words by expressions that are not known here: "
            f"{' then '.join(repr(expression) for expression in expressions)[:600] or 'none'}. Known are those of "
            f"{', '.join((*_WRITTEN, 'deepseek-llm'))}."
        )
    if name == "llama-bpe" and not _words_stay_whole(tokenizer, path):
        return _LLAMA_WITH_MERGES
    return _OF_ARCHITECTURE.get((name, architecture), name)


def _words_stay_whole(tokenizer: dict[str, Any], path: Path) -> bool:
    """Whether taking a word that is a token as it is gives what merging gives: said so, or every token is merged."""
    model = tokenizer["model"]
    if model.get("ignore_merges") is True:
        return True
    merges = list_of(model, "merges", path)
    merged = {"".join(two_parts(merge, path)) for merge in merges}
    entries = [entry for entry in list_of(tokenizer, "added_tokens", path) if isinstance(entry, dict)]
    added = {content for entry in entries if isinstance(content := entry.get("content"), str)}
    return all(len(text) == 1 or text in merged or text in added for text in model["vocab"])


def _expressions(step: Any, path: Path, depth: int = 0) -> tuple[str, ...]:
    """The expressions of a pre-tokenizer in their order, with those that its parts stand for."""
    if step is None:
        return ()
    if not isinstance(step, dict) or depth > _MAX_DEPTH:
        raise ModelFormatError(f"{path}: expected objects in pre_tokenizer, found {step!r:.80}. Download it again.")
    kind = step.get("type")
    if kind == "Sequence":
        parts = list_of(step, "pretokenizers", path)
        return tuple(found for part in parts for found in _expressions(part, path, depth + 1))
    if kind == "ByteLevel" and not step.get("add_prefix_space"):
        return (_GPT2,) if step.get("use_regex", True) else ()
    if kind == "Digits":
        return (r"\p{N}" if step.get("individual_digits") else r"\p{N}+",)
    return (_split_expression(step) if kind == "Split" else f"{kind}",)


def _split_expression(step: dict[str, Any]) -> str:
    pattern, behaviour = step.get("pattern"), step.get("behavior")
    expression = pattern.get("Regex") if isinstance(pattern, dict) else None
    if not isinstance(expression, str):
        return f"{pattern!r:.200}"
    is_usual = behaviour == "Isolated" or (behaviour == "Removed" and step.get("invert") is True)
    return expression if is_usual else f"{expression} ({behaviour})"
