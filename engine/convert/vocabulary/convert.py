"""A checkpoint's tokenizer files as GGUF's `tokenizer.*` keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.convert.json_files import list_of, read_json, read_text
from engine.convert.model_map import MetadataValue
from engine.convert.vocabulary import byte_level, sentencepiece, tiktoken
from engine.convert.vocabulary.pre_tokenizer import pre_tokenizer_name
from engine.convert.vocabulary.special import NAMES, SpecialTokens, chat_templates, special_tokens
from engine.convert.vocabulary.tokens import Tokens
from engine.errors import ModelFormatError
from engine.gguf.value_types import ValueType

# Signs of an architecture that no file of the checkpoint names as what they are, by GGUF's key.
_BY_TEXT = {
    "glm4moe": {"bos": "[gMASK]", "eot": "<|user|>", "unknown": "<|endoftext|>", "eom": "<|observation|>"},
}


def vocabulary_keys(
    folder: Path, architecture: str, n_tokens: int, config: Mapping[str, Any]
) -> dict[str, MetadataValue]:
    """`architecture`: GGUF's name. `n_tokens`: rows of the embedding. `config`: the values of config.json.

    Raises ModelFormatError for tokenizer files that are missing, damaged or of another model, UnsupportedModelError
    for a kind of tokenizer that is not known here.
    """
    tokenizer = read_json(folder / "tokenizer.json") or {}
    settings = read_json(folder / "tokenizer_config.json") or {}
    tokens = _tokens(folder, architecture, n_tokens, tokenizer)
    added = list(_added_tokens(folder, tokenizer, settings))
    for token_id, text, is_special, path in added:
        tokens.add(token_id, text, special=is_special, path=path)

    id_of = {text: token_id for token_id, text, _, _ in reversed(added)}
    if tokens.model == "llama":  # its signs are pieces, and need not be added ones
        id_of = {text: token_id for token_id, text in reversed(list(enumerate(tokens.texts)))} | id_of
    special = special_tokens(tokenizer, settings, config, id_of, byte_level=tokens.model == "gpt2")
    keys = _token_keys(tokens)
    keys |= _special_keys(special, _BY_TEXT.get(architecture, {}), id_of, n_tokens)
    keys |= _template_keys(chat_templates(settings, _separate_template(folder)))
    return keys


def _tokens(folder: Path, architecture: str, n_tokens: int, tokenizer: dict[str, Any]) -> Tokens:
    model, path = folder / "tokenizer.model", folder / "tokenizer.json"
    inner = tokenizer.get("model")
    has_byte_fallback = isinstance(inner, dict) and inner.get("byte_fallback") is True
    if model.is_file() and (has_byte_fallback or not tokenizer):
        return sentencepiece.tokens_from_pieces(sentencepiece.read_pieces(model), n_tokens, model)
    if has_byte_fallback and isinstance(inner, dict) and tokenizer.get("pre_tokenizer") is None:
        return sentencepiece.tokens_from_json(inner, n_tokens, path)
    if tokenizer:
        # The vocabulary is looked at first: the name of the pre-tokenizer depends on it.
        tokens = byte_level.tokens_from_json(tokenizer, "", n_tokens, path)
        tokens.pre = pre_tokenizer_name(tokenizer, architecture, path)
        return tokens
    if (ranks := tiktoken.find_vocabulary(folder)) is not None:
        return tiktoken.tokens_from_ranks(ranks, architecture, n_tokens)
    raise ModelFormatError(
        f"{folder}: expected tokenizer.json, tokenizer.model or tiktoken.model there, found none of them. "
        "Download the model's tokenizer too."
    )


def _added_tokens(
    folder: Path, tokenizer: dict[str, Any], settings: dict[str, Any]
) -> Iterator[tuple[int, str, bool, Path]]:
    """(id, text, whether special, where it was found), the file that counts most last."""
    for text, token_id in (read_json(folder / "added_tokens.json") or {}).items():
        yield _checked(token_id, text, False, folder / "added_tokens.json")
    path = folder / "tokenizer.json"
    for entry in list_of(tokenizer, "added_tokens", path):
        if not isinstance(entry, dict):
            raise ModelFormatError(f"{path}: expected objects in added_tokens, found {entry!r:.80}.")
        yield _checked(entry.get("id"), entry.get("content"), entry.get("special") is True, path)
    path = folder / "tokenizer_config.json"
    decoder = settings.get("added_tokens_decoder")
    for key, entry in decoder.items() if isinstance(decoder, dict) else ():
        if not isinstance(entry, dict) or not key.isdecimal() or len(key) > 9:
            raise ModelFormatError(f"{path}: expected ids and objects in added_tokens_decoder, found {key[:40]!r}.")
        yield _checked(int(key), entry.get("content"), entry.get("special") is True, path)


def _checked(token_id: Any, text: Any, special: bool, path: Path) -> tuple[int, str, bool, Path]:
    if type(token_id) is not int or not isinstance(text, str):
        raise ModelFormatError(
            f"{path}: expected added tokens with an id and a text, found {token_id!r:.40}, {text!r:.60}."
        )
    return token_id, text, special, path


def _token_keys(tokens: Tokens) -> dict[str, MetadataValue]:
    keys = {
        "tokenizer.ggml.model": MetadataValue(tokens.model, ValueType.STRING),
        "tokenizer.ggml.pre": MetadataValue(tokens.pre, ValueType.STRING),
        "tokenizer.ggml.tokens": MetadataValue(tokens.texts, ValueType.STRING),
        "tokenizer.ggml.token_type": MetadataValue([int(kind) for kind in tokens.kinds], ValueType.INT32),
    }
    if tokens.scores:
        keys["tokenizer.ggml.scores"] = MetadataValue(tokens.scores, ValueType.FLOAT32)
    if tokens.merges:
        keys["tokenizer.ggml.merges"] = MetadataValue(tokens.merges, ValueType.STRING)
    return keys


def _special_keys(
    special: SpecialTokens, by_text: Mapping[str, str], id_of: Mapping[str, int], n_tokens: int
) -> dict[str, MetadataValue]:
    ids = {NAMES[name]: token_id for name, token_id in special.ids.items()}
    ids |= {name: id_of[text] for name, text in by_text.items() if text in id_of}
    keys = {
        f"tokenizer.ggml.{name}_token_id": MetadataValue(token_id, ValueType.UINT32)
        for name, token_id in ids.items()
        if token_id < n_tokens
    }
    for name, is_added in special.added.items():
        keys[f"tokenizer.ggml.add_{name}_token"] = MetadataValue(is_added, ValueType.BOOL)
    return keys


def _template_keys(templates: Mapping[str, str]) -> dict[str, MetadataValue]:
    named = sorted(name for name in templates if name)
    keys = {
        "tokenizer.chat_template" + (f".{name}" if name else ""): MetadataValue(text, ValueType.STRING)
        for name, text in templates.items()
    }
    if named:
        keys["tokenizer.chat_templates"] = MetadataValue(named, ValueType.STRING)
    return keys


def _separate_template(folder: Path) -> str | None:
    template = read_text(folder / "chat_template.jinja")
    if template is None and (file := read_json(folder / "chat_template.json")) is not None:
        return file["chat_template"] if isinstance(file.get("chat_template"), str) else None
    return template
