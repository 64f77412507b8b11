"""Tokenizer files become the vocabulary that they describe; text gives the ids that the tokenizers library gives."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.convert import Checkpoint, plan_conversion
from engine.convert.vocabulary.convert import vocabulary_keys
from engine.convert.vocabulary.pre_tokenizer import pre_tokenizer_name
from engine.convert.vocabulary.sentencepiece import read_pieces
from engine.convert.vocabulary.special import chat_templates
from engine.convert.vocabulary.tiktoken import read_ranks
from engine.errors import ColibriError, ModelFormatError, UnsupportedModelError
from engine.tokenizer import Tokenizer
from engine.tokenizer.vocabulary import BYTE_OF_CHARACTER, TokenKind
from tests.support.checkpoints import CheckpointCase, checkpoint_case, checkpoint_cases, write_files

TEXTS = (
    "The quick brown fox can't jump over 12345 lazy dogs!",
    "  indented\n\n\tdef f(x):\n        return x ** 2   # spaces   \n",
    "多头注意力 naïve café – “quotes” 🙂 x²",
)
BYTE_LEVEL = [case for case in checkpoint_cases() if "tokenizer.model" not in case.files]


def keys_of(folder: Path, architecture: str = "llama", n_tokens: int = 608) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_text())
    return {key: entry.value for key, entry in vocabulary_keys(folder, architecture, n_tokens, config).items()}


def folder_of(case: CheckpointCase, parent: Path) -> Path:
    parent.mkdir(exist_ok=True)
    write_files(parent, case.files)
    return parent


def changed(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    values = json.loads((folder / name).read_text())
    change(values)
    (folder / name).write_text(json.dumps(values))


@pytest.mark.parametrize("case", BYTE_LEVEL, ids=lambda case: case.name)
def test_text_gives_the_ids_of_the_published_tokenizer(case: CheckpointCase, tmp_path: Path) -> None:
    with Checkpoint.open(case.write(tmp_path, weights=False)) as checkpoint:
        plan = plan_conversion(checkpoint)
        published = tokenizers.Tokenizer.from_file(str(checkpoint.folder / "tokenizer.json"))
    ours = Tokenizer.from_metadata({key: entry.value for key, entry in plan.metadata.items()})

    normalise = published.normalizer.normalize_str if published.normalizer else str
    for text in map(normalise, TEXTS):  # GGUF cannot say that a text is normalised
        assert ours.encode(text) == published.encode(text).ids


def test_a_sentencepiece_model_is_read_piece_by_piece(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("llama"), tmp_path)
    pieces = read_pieces(folder / "tokenizer.model")

    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert {text: token_id for token_id, (text, _, _) in enumerate(pieces)} == vocabulary
    assert pieces[0][2] is TokenKind.UNKNOWN
    assert pieces[1][2] is TokenKind.CONTROL
    assert [text for text, _, kind in pieces if kind is TokenKind.BYTE] == [f"<0x{value:02X}>" for value in range(256)]


@pytest.mark.parametrize("name", ["llama", "phi3", "ernie4_5_moe"])
def test_scores_follow_from_the_merges_where_there_is_no_sentencepiece_model(name: str, tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case(name), tmp_path)
    with_model = Tokenizer.from_metadata(keys_of(folder))
    (folder / "tokenizer.model").unlink()
    keys = keys_of(folder)
    without = Tokenizer.from_metadata(keys)

    assert keys["tokenizer.ggml.model"] == "llama"
    for text in TEXTS:
        assert without.encode(text) == with_model.encode(text)


def test_a_model_alone_is_enough(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("llama"), tmp_path)
    expected = keys_of(folder)
    (folder / "tokenizer.json").unlink()
    found = keys_of(folder)
    for key in ("tokens", "scores", "token_type", "bos_token_id", "eos_token_id", "unknown_token_id", "add_bos_token"):
        assert found[f"tokenizer.ggml.{key}"] == expected[f"tokenizer.ggml.{key}"]


@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_sentencepiece_model_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("llama"), tmp_path)
    path = folder / "tokenizer.model"
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        keys_of(folder)
    except (ModelFormatError, UnsupportedModelError) as error:
        assert str(folder) in str(error)


json_values = (
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.text(max_size=6) | st.just([[]]) | st.just({"a": 1})
)


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_json_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    """One value anywhere in one of the files is replaced by another."""
    case = data.draw(st.sampled_from([checkpoint_case(name) for name in ("deepseek_v2", "llama", "glm4_moe", "phi3")]))
    folder = folder_of(case, tmp_path)
    if data.draw(st.booleans()):
        (folder / "tokenizer.model").unlink(missing_ok=True)
    name = data.draw(st.sampled_from(["tokenizer.json", "tokenizer_config.json", "config.json"]))
    values = json.loads((folder / name).read_text())
    place: Any = values
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if not place[key] or not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(json_values)
    (folder / name).write_text(json.dumps(values))
    try:
        keys_of(folder)
    except ColibriError as error:
        assert str(folder) in str(error)


def as_tiktoken(folder: Path) -> list[str]:
    """Write the vocabulary of tokenizer.json as ranks and take it away; gives its merges."""
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    lines = [
        f"{base64.b64encode(bytes(BYTE_OF_CHARACTER[character] for character in text)).decode()} {token_id}"
        for text, token_id in model["vocab"].items()
    ]
    (folder / "tiktoken.model").write_text("\n".join(lines))
    (folder / "tokenizer.json").unlink()
    return [" ".join(merge) for merge in model["merges"]]


@pytest.mark.parametrize(("architecture", "pre"), [("deepseek2", "kimi-k2"), ("hunyuan-moe", "hunyuan")])
def test_merges_follow_from_ranks(architecture: str, pre: str, tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("hunyuan_v1_moe"), tmp_path)
    expected = keys_of(folder, architecture)
    merges = as_tiktoken(folder)
    found = keys_of(folder, architecture)

    assert set(found["tokenizer.ggml.merges"]) >= set(merges)
    assert found["tokenizer.ggml.pre"] == pre
    assert found["tokenizer.ggml.add_bos_token"] is False
    for key in ("tokens", "token_type", "bos_token_id", "eos_token_id", "padding_token_id"):
        assert found[f"tokenizer.ggml.{key}"] == expected[f"tokenizer.ggml.{key}"]


def by_ranks(word: bytes, ranks: dict[bytes, int]) -> list[int]:
    """As tiktoken does it: join the neighbours that are the token of the lowest rank, until there are none."""
    parts = [word[index : index + 1] for index in range(len(word))]
    while True:
        joined = [
            (ranks[parts[n] + parts[n + 1]], n) for n in range(len(parts) - 1) if parts[n] + parts[n + 1] in ranks
        ]
        if not joined:
            return [ranks[part] for part in parts]
        _, n = min(joined)
        parts[n : n + 2] = [parts[n] + parts[n + 1]]


@given(word=st.text("aehinorst", min_size=1, max_size=16) | st.text("é多ab", min_size=1, max_size=6))
def test_words_are_joined_as_ranks_say(word: str, tmp_path: Path) -> None:
    """Ranks in another order than merges would have, so that a token is made of different parts."""
    letters = [bytes([value]) for value in range(256)]
    more = [b"he", b"in", b"er", b"th", b"the", b"ther", b"her", b"an", b"and", b"ina", b"nan", b"na", b"rin", b"tin"]
    ranks = {token: rank for rank, token in enumerate([*letters, *more])}
    folder = folder_of(checkpoint_case("hunyuan_v1_moe"), tmp_path)
    (folder / "tokenizer.json").unlink(missing_ok=True)
    lines = [f"{base64.b64encode(token).decode()} {rank}" for token, rank in ranks.items()]
    (folder / "tiktoken.model").write_text("\n".join(lines))

    tokenizer = Tokenizer.from_metadata(keys_of(folder, "hunyuan-moe"))
    assert tokenizer.encode(word) == by_ranks(word.encode(), ranks)


def test_ranks_of_an_architecture_that_cuts_words_in_an_unknown_way_are_refused(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("hunyuan_v1_moe"), tmp_path)
    as_tiktoken(folder)
    with pytest.raises(UnsupportedModelError, match=r"expected a tokenizer\.json"):
        keys_of(folder, "llama")


@pytest.mark.parametrize("line", ["IQ== x", "IQ==", "I!Q== 7", "IQ== 0", "IQ== 1 2", "\x00"])
def test_a_damaged_line_of_ranks_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "tiktoken.model"
    path.write_text(f"IQ== 0\nIg== 1\n{line}\n")
    with pytest.raises(ModelFormatError, match="line 3"):
        read_ranks(path)


def test_rows_that_no_token_has_are_unused(tmp_path: Path) -> None:
    keys = keys_of(folder_of(checkpoint_case("qwen3_moe"), tmp_path), n_tokens=700)
    assert keys["tokenizer.ggml.tokens"][699] == "[PAD699]"
    assert set(keys["tokenizer.ggml.token_type"][600:]) == {int(TokenKind.UNUSED)}


def test_added_tokens_are_signs_or_whole_words(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("qwen3_moe"), tmp_path)

    def add(values: dict[str, Any]) -> None:
        for token_id, text, special in ((600, "<think>", False), (601, "<|im_x|>", False), (602, "[X]", True)):
            values["added_tokens"].append({"id": token_id, "content": text, "special": special})

    changed(folder, "tokenizer.json", add)
    kinds = keys_of(folder)["tokenizer.ggml.token_type"][600:603]
    assert kinds == [TokenKind.USER_DEFINED, TokenKind.CONTROL, TokenKind.CONTROL]


@pytest.mark.parametrize("content", [None, 7, [[]], {"a": 1}])
def test_an_added_token_without_a_text_is_refused(content: Any, tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("glm4_moe"), tmp_path)
    changed(folder, "tokenizer.json", lambda values: values["added_tokens"][0].update(content=content))
    with pytest.raises(ModelFormatError, match="added tokens with an id and a text"):
        keys_of(folder)


def test_an_unknown_way_to_cut_words_is_quoted(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("qwen3_moe"), tmp_path)
    changed(
        folder, "tokenizer.json", lambda values: values["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed")
    )
    with pytest.raises(UnsupportedModelError, match=r"Removed.* Known are those of gpt-2"):
        keys_of(folder)


def test_a_vocabulary_with_unreachable_words_is_not_said_to_take_words_whole(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("glm4_moe"), tmp_path)
    values = json.loads((folder / "tokenizer.json").read_text())
    assert pre_tokenizer_name(values, "glm4moe", folder) == "llama-bpe"
    del values["model"]["merges"][-1]
    assert pre_tokenizer_name(values, "glm4moe", folder) == "smaug-bpe"
    values["model"]["ignore_merges"] = True
    assert pre_tokenizer_name(values, "glm4moe", folder) == "llama-bpe"


def test_line_ends_may_be_published_as_themselves(tmp_path: Path) -> None:
    values = json.loads(checkpoint_case("deepseek_v3").files["tokenizer.json"])
    for step in values["pre_tokenizer"]["pretokenizers"][:-1]:
        step["pattern"]["Regex"] = step["pattern"]["Regex"].replace(r"\r", "\r").replace(r"\n", "\n")
    assert pre_tokenizer_name(values, "deepseek2", tmp_path) == "deepseek-v3"


def test_a_template_may_stand_in_a_file_of_its_own_and_have_a_name(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("qwen3_moe"), tmp_path)
    changed(folder, "tokenizer_config.json", lambda values: values.pop("chat_template"))
    assert "tokenizer.chat_template" not in keys_of(folder)
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    assert keys_of(folder)["tokenizer.chat_template"] == "{{ messages }}"

    named = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]
    assert chat_templates({"chat_template": named}, None) == {"": "a", "tool_use": "b"}
    changed(folder, "tokenizer_config.json", lambda values: values.update(chat_template=named))
    assert keys_of(folder)["tokenizer.chat_template.tool_use"] == "b"
    assert keys_of(folder)["tokenizer.chat_templates"] == ["tool_use"]


def test_ends_may_be_a_list_and_the_tokenizer_counts_first(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("qwen3_moe"), tmp_path)
    changed(folder, "config.json", lambda values: values.update(eos_token_id=[598, 599]))
    assert keys_of(folder)["tokenizer.ggml.eos_token_id"] == 599
    changed(folder, "tokenizer_config.json", lambda values: values.pop("eos_token"))
    assert keys_of(folder)["tokenizer.ggml.eos_token_id"] == 598


def test_a_checkpoint_without_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = folder_of(checkpoint_case("qwen3_moe"), tmp_path)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelFormatError, match="there, found none of them"):
        keys_of(folder)
