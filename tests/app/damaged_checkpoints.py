"""Some seventy ways in which a checkpoint or a request can be wrong, each with words of the error that it gives."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.convert import ConversionOptions, Mixture
from engine.gguf import TensorType

Damage = Callable[[Path], None]
WEIGHTS, CONFIG, INDEX = "model.safetensors", "config.json", "model.safetensors.index.json"
ROW = "model.layers.1.mlp.experts.7.down_proj.weight"


@dataclass(frozen=True, slots=True)
class Damaged:
    """`damage(folder)` of a sound Qwen3-MoE checkpoint, then converting it with `options`; `words` of what is said."""

    name: str
    damage: Damage
    words: str
    options: ConversionOptions = field(default_factory=ConversionOptions)


def nothing(folder: Path) -> None:
    """Leave the checkpoint sound: the request is wrong."""


def config(**changes: Any) -> Damage:
    def damage(folder: Path) -> None:
        values = json.loads((folder / CONFIG).read_text()) | changes
        (folder / CONFIG).write_text(json.dumps(values))

    return damage


def text(name: str, content: str | bytes) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return damage


def removed(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def link(name: str, target: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return damage


def header(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Change the header's entries; the data stay where they are."""

    def damage(folder: Path) -> None:
        raw = (folder / WEIGHTS).read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        entries = json.loads(raw[8:start])
        change(entries)
        write(folder / WEIGHTS, json.dumps(entries).encode(), raw[start:])

    return damage


def write(path: Path, head: bytes, data: bytes) -> None:
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)


def entry(**changes: Any) -> Damage:
    return header(lambda entries: entries[ROW].update(changes))


def raw_header(change: Callable[[bytes], bytes]) -> Damage:
    def damage(folder: Path) -> None:
        raw = (folder / WEIGHTS).read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        write(folder / WEIGHTS, change(raw[8:start]), raw[start:])

    return damage


def last_value(two_bytes: bytes) -> Damage:
    """The last BF16 number of one expert's matrix."""

    def damage(folder: Path) -> None:
        raw = bytearray((folder / WEIGHTS).read_bytes())
        start = 8 + int.from_bytes(raw[:8], "little")
        end = start + json.loads(raw[8:start])[ROW]["data_offsets"][1]
        raw[end - 2 : end] = two_bytes
        (folder / WEIGHTS).write_bytes(raw)

    return damage


def cut(n_bytes: int) -> Damage:
    return lambda folder: os.truncate(folder / WEIGHTS, (folder / WEIGHTS).stat().st_size - n_bytes)


def start(content: bytes) -> Damage:
    def damage(folder: Path) -> None:
        (folder / WEIGHTS).write_bytes(content + bytes(4096))

    return damage


def index(weight_map: object, extra: str = "") -> Damage:
    return text(INDEX, f'{{"metadata": {{}}{extra}, "weight_map": {json.dumps(weight_map)}}}')


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")


def folder_instead(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).mkdir()


def pipe_instead(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    os.mkfifo(folder / WEIGHTS)


def copied(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder / "consolidated.safetensors")


def larger_vocabulary(folder: Path) -> None:
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text())
    values["model"]["vocab"]["far away"] = 5_000
    path.write_text(json.dumps(values))


Q4, F16 = ConversionOptions(mixture=Mixture.Q4_K_M), ConversionOptions(type=TensorType.F16)
NESTED = '{"a": ' * 100_000
DAMAGED = (
    Damaged("no configuration", removed(CONFIG), CONFIG),
    Damaged("an empty configuration", text(CONFIG, ""), "expected JSON"),
    Damaged("a configuration that is no JSON", text(CONFIG, "{hidden_size: 3}"), "expected JSON"),
    Damaged("a configuration that is a list", text(CONFIG, "[1, 2]"), "expected a JSON object"),
    Damaged("a key twice", text(CONFIG, '{"hidden_size": 1, "hidden_size": 2}'), "'hidden_size' twice"),
    Damaged("JSON that is nested without end", text(CONFIG, NESTED), CONFIG),
    Damaged("a configuration that is no text", text(CONFIG, b"\xff\xfe{\x00"), "UTF-8"),
    Damaged("an unknown architecture", config(architectures=["Grok1ForCausalLM"]), "Grok1ForCausalLM"),
    Damaged("no architecture", config(architectures=[]), "architectures"),
    Damaged("a width that the tensors have not", config(hidden_size=512), "hidden_size"),
    Damaged("a width that is text", config(hidden_size="256"), "hidden_size"),
    Damaged("a width below zero", config(hidden_size=-256), "hidden_size"),
    Damaged("a width beyond all memory", config(hidden_size=2**50), "hidden_size"),
    Damaged("a width that is infinite", config(hidden_size=float("inf")), "hidden_size"),
    Damaged("more layers than there are", config(num_hidden_layers=3), "layer 2"),
    Damaged("fewer layers than there are", config(num_hidden_layers=1), "model.layers.1."),
    Damaged("more experts than there are", config(num_experts=16, num_local_experts=16), "experts"),
    Damaged("more experts for a token than there are", config(num_experts_per_tok=9), "expected 1 to 8 experts"),
    Damaged("no expert for a token", config(num_experts_per_tok=0), "num_experts_per_tok"),
    Damaged("experts of another width", config(moe_intermediate_size=128), "moe_intermediate_size"),
    Damaged("a vocabulary of another size", config(vocab_size=1000), "vocab_size"),
    Damaged("heads that do not divide", config(num_key_value_heads=3), "num_key_value_heads"),
    Damaged("a quantisation that is not known", config(quantization_config={"quant_method": "gptq"}), "gptq"),
    Damaged("positions scaled in an unknown way", config(rope_scaling={"rope_type": "spiral"}), "spiral"),
    Damaged("an activation that is not known", config(hidden_act="gelu"), "gelu"),
    Damaged("another number of experts asked for", nothing, "64 experts were asked for",
            ConversionOptions(expert_count=64)),
    Damaged("more experts for a token asked for", nothing, "found 9", ConversionOptions(top_k=9)),
    Damaged("routers of a name that none has", nothing, "model.layers.0.dispatch.weight",
            ConversionOptions(router_pattern="model.layers.{layer}.dispatch.weight")),
    Damaged("no weights", removed(WEIGHTS), "safetensors"),
    Damaged("pickled weights", pickled, "pytorch_model.bin"),
    Damaged("an empty file of weights", text(WEIGHTS, ""), WEIGHTS),
    Damaged("a header that is cut short", lambda folder: os.truncate(folder / WEIGHTS, 300), WEIGHTS),
    Damaged("less than a header's length", lambda folder: os.truncate(folder / WEIGHTS, 5), WEIGHTS),
    Damaged("a header longer than the file", start((1 << 40).to_bytes(8, "little")), "header"),
    Damaged("a header that is no JSON", raw_header(lambda head: b"{" * len(head)), "JSON"),
    Damaged("a header with a name twice", raw_header(lambda head: head[:-1] + b"," + head[1:]), "twice"),
    Damaged("data cut short", cut(2), WEIGHTS),
    Damaged("data that are missing", cut(1 << 20), WEIGHTS),
    Damaged("a tensor that is missing", header(lambda entries: entries.pop(ROW)), ROW),
    Damaged("a tensor of another shape", entry(shape=[32, 256]), ROW),
    Damaged("a tensor beyond all memory", entry(shape=[1 << 40, 1 << 40]), ROW),
    Damaged("a shape below zero", entry(shape=[-256, -32]), ROW),
    Damaged("a shape that is no list", entry(shape="256"), ROW),
    Damaged("a tensor of whole numbers", entry(dtype="I16"), ROW),
    Damaged("a tensor of an unknown type", entry(dtype="F7"), "F7"),
    Damaged("a tensor in another's place", entry(data_offsets=[0, 16384]), ROW),
    Damaged("a tensor behind the end", entry(data_offsets=[1 << 40, (1 << 40) + 16384]), ROW),
    Damaged("places that are no numbers", entry(data_offsets=[None, "x"]), ROW),
    Damaged("a number that is none", last_value(b"\xc0\x7f"), "found nan", Q4),
    Damaged("an infinite number", last_value(b"\x80\xff"), "found -inf", ConversionOptions(type=TensorType.BF16)),
    Damaged("a number beyond the type's", last_value(b"\x80\x47"), "65,504", F16),
    Damaged("a number beyond the scales'", last_value(b"\x80\x47"), "65,536", Q4),
    Damaged("a shard that is missing", index({ROW: "model-00007-of-00009.safetensors"}), "model-00007-of-00009"),
    Damaged("a shard outside of the folder", index({ROW: "../../outside.safetensors"}), "../../outside.safetensors"),
    Damaged("a shard at the root", index({ROW: "/etc/passwd.safetensors"}), "/etc/passwd.safetensors"),
    Damaged("an index of tensors that are not there", index({"model.extra.weight": WEIGHTS}), "model.extra.weight"),
    Damaged("an index that is a list", index([ROW]), "weight_map"),
    Damaged("an index with a key twice", index({ROW: WEIGHTS}, ', "metadata": {}'), "'metadata' twice"),
    Damaged("the same tensors in two files", copied, "more than one copy"),
    Damaged("a pointer in the file's place", start(b"version https://git-lfs.github.com/spec/v1\noid sha256:0"), "LFS"),
    Damaged("a page in the file's place", start(b"<!DOCTYPE html><html><body>404"), "HTML"),
    Damaged("an archive in the file's place", start(b"PK\x03\x04"), "ZIP"),
    Damaged("a folder in the file's place", folder_instead, WEIGHTS),
    Damaged("a pipe in the file's place", pipe_instead, WEIGHTS),
    Damaged("a link that leads to itself", link(WEIGHTS, WEIGHTS), WEIGHTS),
    Damaged("a link that leads nowhere", link(WEIGHTS, "nowhere"), WEIGHTS),
    Damaged("a configuration that is a loop of links", link(CONFIG, CONFIG), CONFIG),
    Damaged("no tokenizer", removed("tokenizer.json"), "tokenizer"),
    Damaged("a tokenizer that is no JSON", text("tokenizer.json", '{"model": '), "tokenizer.json"),
    Damaged("a tokenizer of more tokens than rows", larger_vocabulary, "5,00"),
)  # fmt: skip
