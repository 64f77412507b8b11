"""`colibri inspect FILE`: prints what a GGUF model holds, as tables or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.commands import inspect_routers
from app.commands.chat_options import whole
from engine.checks import Check, Outcome, check_model
from engine.convert.beside import CONFIG
from engine.errors import ColibriError
from engine.gguf.inspect import KeyDescription, LayerDescription, ModelDescription, describe
from engine.gguf.reader import GGUFReader

if TYPE_CHECKING:
    from engine.gguf.header import TensorInfo

_WIDTH_IN_PIPES = 200
_MARKS = {Outcome.PASSED: "ok", Outcome.NOTED: "note", Outcome.FAILED: "FAILED"}
_N_SHOWN_CHARACTERS = 100
_JSON_FACTS = (
    "paths",
    "version",
    "file_bytes",
    "tensor_bytes",
    "n_parameters",
    "architecture",
    "name",
    "licence",
    "context_length",
    "n_layers",
    "n_experts",
    "top_k",
    "has_chat_template",
    "comparison",
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `inspect`."""
    parser = subparsers.add_parser(
        "inspect",
        help="show what a model file holds",
        description="Show the facts, checks, keys and tensors of a GGUF model. Only --router-precision reads its "
        "weights. The exit code is 1 where a check failed.",
    )
    parser.add_argument("file", metavar="FILE", help="a GGUF file, or any part of a split one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--checks", action="store_true", help="only the checks")
    parser.add_argument("--keys", action="store_true", help="only the metadata keys")
    parser.add_argument("--tensors", action="store_true", help="only the tensors, each on a line of its own")
    parser.add_argument(
        "--router-precision",
        action="store_true",
        help="show how often bf16 and fp16 routers choose other experts than fp32 ones on a text",
    )
    parser.add_argument(
        "--text", metavar="TEXT", help="with --router-precision: a text file (default: a built-in text)"
    )
    parser.add_argument(
        "--tokens",
        type=whole(1),
        default=2048,
        metavar="N",
        help="with --router-precision: at most N tokens of the text (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the description of `args.file`; 0, or 1 after messages on stderr.

    These say that the file cannot be read, or name the checks that failed.
    """
    if args.router_precision:
        return inspect_routers.run(args)
    try:
        with GGUFReader.open(args.file) as reader:
            model = describe(reader)
            checks = check_model(reader)
    except ColibriError as error:
        sys.stderr.write(f"colibri inspect: {_printable(str(error), limit=None)}\n")
        return 1
    failed = [check for check in checks if check.outcome is Outcome.FAILED]
    everything = not (args.checks or args.keys or args.tensors)
    if args.json:
        described = _as_json(model, args.keys or everything, args.tensors or everything)
        described["contradictions"] = [
            str(found) for check in failed if check.name == CONFIG for found in check.findings
        ]
        described["checks"] = [
            {"name": check.name, "outcome": check.outcome, "finding": check.finding} for check in checks
        ]
        sys.stdout.write(json.dumps(described, indent=2) + "\n")
        return int(bool(failed))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_IN_PIPES)
    if everything:
        console.print(_facts(model))
    if args.checks or everything:
        console.print(_checks(checks))
    if args.keys or everything:
        console.print(_keys(model))
    if everything:
        console.print(_types(model))
    if args.tensors or everything:
        console.print(_tensors(model, merge_layers=everything))
    for check in failed:
        sys.stderr.write(f"colibri inspect: {check.name}: {_printable(check.finding, limit=None)}\n")
    return int(bool(failed))


def _facts(model: ModelDescription) -> Table:
    table = Table("", "", title="Model", title_justify="left", box=None, show_header=False, pad_edge=False)
    rows = {
        "name": model.name,
        "architecture": model.architecture,
        "licence": model.licence,
        "parameters": f"{model.n_parameters:,}",
        "layers": model.n_layers,
        "experts": _experts(model),
        "context": f"{model.context_length:,} tokens" if model.context_length else None,
        "chat template": "present" if model.has_chat_template else "none",
        "beside its source": model.comparison or "not compared",
        "format": f"GGUF version {model.version}, {len(model.paths)} file{'s' * (len(model.paths) > 1)}",
        "size": f"{_size(model.file_bytes)} ({model.file_bytes:,} bytes)",
    }
    for label, value in rows.items():
        table.add_row(label, _text("not said in the file" if value is None else str(value)))
    return table


def _experts(model: ModelDescription) -> str:
    if not model.n_experts:
        return "none (a dense model)"
    chosen = f"{model.n_experts}, {model.top_k or 'an unknown number'} of them per token"
    n_routers = sum(layer.router is not None for layer in model.layers)
    if not n_routers:
        return f"{chosen}; but no layer has a router (a tensor named blk.N.ffn_gate_inp.weight)"
    return f"{chosen}, in {n_routers} layer{'s' * (n_routers > 1)}"


def _checks(checks: list[Check]) -> Table:
    table = _table("Checks", "outcome", "check", "finding")
    for check in checks:
        mark = Text(_MARKS[check.outcome], style="bold red" if check.outcome is Outcome.FAILED else "")
        table.add_row(mark, check.name, _text(check.finding))
    return table


def _keys(model: ModelDescription) -> Table:
    table = _table("Keys", "key", "value")
    for key in model.keys:
        table.add_row(_text(key.name), _text(_shown_value(key)))
    return table


def _types(model: ModelDescription) -> Table:
    table = _table("Tensor types", "type", "tensors", "elements", "bytes", "share")
    for total in model.types:
        share = f"{100 * total.n_bytes / model.tensor_bytes:.1f} %"
        table.add_row(total.type.name, f"{total.n_tensors:,}", f"{total.n_elements:,}", f"{total.n_bytes:,}", share)
    return table


def _tensors(model: ModelDescription, merge_layers: bool) -> Table:
    table = _table("Tensors", "tensor", "type", "shape", "bytes")
    for title, layer in _sections(model.layers, merge_layers):
        table.add_section()
        table.add_row(Text(title, style="bold"), "", "", Text(f"{layer.n_bytes:,}", style="bold"))
        for tensor in layer.tensors:
            marked = " (router)" if tensor is layer.router else ""
            name = _relative_name(layer, tensor) if merge_layers else tensor.name
            shape = " x ".join(str(dimension) for dimension in tensor.shape) or "scalar"
            table.add_row(_text(f"  {name}{marked}"), tensor.type.name, shape, f"{tensor.n_bytes:,}")
    return table


def _sections(layers: tuple[LayerDescription, ...], merge_layers: bool) -> Iterator[tuple[str, LayerDescription]]:
    """Layers with a title each; neighbours with the same tensors become one section if `merge_layers`."""

    def alike(layer: LayerDescription) -> object:
        if not merge_layers or layer.index is None:
            return layer.index
        return [(_relative_name(layer, tensor), tensor.type, tensor.shape) for tensor in layer.tensors]

    for _, group in groupby(layers, key=alike):
        members = list(group)
        first, last = members[0].index, members[-1].index
        if first is None:
            yield "outside the layers", members[0]
        else:
            yield (f"layer {first}" if first == last else f"layers {first} to {last}, each"), members[0]


def _relative_name(layer: LayerDescription, tensor: TensorInfo) -> str:
    return tensor.name if layer.index is None else tensor.name.split(".", 2)[2]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        is_number = column in ("tensors", "elements", "bytes", "share")
        table.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=index == 0)
    return table


def _shown_value(key: KeyDescription) -> str:
    if key.n_items is not None:
        items = json.dumps(key.value, ensure_ascii=False)
        return f"{items[:-1]}, ...] ({key.n_items:,} items)" if key.is_abbreviated else items
    text = _printable(str(key.value), _N_SHOWN_CHARACTERS)
    return f"{text} ({key.n_characters:,} characters)" if text.endswith("...") and key.n_characters else text


def _text(text: str) -> Text:
    return Text(_printable(text, limit=None))


def _printable(text: str, limit: int | None) -> str:
    """`text` on one line, without control characters that could steer a terminal."""
    shown = text if limit is None else text[:limit]
    clean = "".join(character if character.isprintable() else repr(character)[1:-1] for character in shown)
    return clean + ("..." if len(shown) < len(text) else "")


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def _as_json(model: ModelDescription, with_keys: bool, with_tensors: bool) -> dict[str, Any]:
    result: dict[str, Any] = {name: getattr(model, name) for name in _JSON_FACTS}
    result["types"] = [
        {
            "type": total.type.name,
            "n_tensors": total.n_tensors,
            "n_elements": total.n_elements,
            "n_bytes": total.n_bytes,
        }
        for total in model.types
    ]
    if with_keys:
        result["keys"] = {
            key.name: {"value": key.value, "n_items": key.n_items, "is_abbreviated": key.is_abbreviated}
            for key in model.keys
        }
    if with_tensors:
        result["layers"] = [
            {
                "index": layer.index,
                "n_bytes": layer.n_bytes,
                "router": layer.router.name if layer.router else None,
                "tensors": [
                    {
                        "name": tensor.name,
                        "type": tensor.type.name,
                        "shape": tensor.shape,
                        "n_bytes": tensor.n_bytes,
                        "file_index": tensor.file_index,
                        "offset": tensor.offset,
                    }
                    for tensor in layer.tensors
                ],
            }
            for layer in model.layers
        ]
    return result
