"""`colibri convert`: makes a GGUF file of a checkpoint as it is published, or of a GGUF file of another type."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from app.calibration import calibration_texts, is_text, sample_texts
from app.commands.progress_line import ProgressLine
from app.commands.reading_options import add_replace
from app.conversion import Converted, convert
from app.file_types import FILE_TYPES, ROUTER_TYPES, FileType
from app.jobs import Job
from engine.convert import ConversionOptions
from engine.convert.calibrate import ImportanceMatrix, read_importance
from engine.errors import InvalidRequestError

_TYPES = {kind.key: kind for kind in FILE_TYPES}
OWN_TEXTS = Path("english, chinese, code, conversations")  # stands for --calibration without a file
_ALIASES = {"q4_k": "q4_k_m", "q5_k": "q5_k_m"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `convert`."""
    parser = subparsers.add_parser(
        "convert",
        help="make a GGUF file of a published checkpoint, or of another GGUF file",
        description="Make a GGUF file of a checkpoint: a folder with config.json, safetensors files and a tokenizer, "
        "or one safetensors file with those beside it; or of a GGUF file, to quantise it. Everything is checked "
        "before anything is written.",
    )
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("model", type=Path, nargs="?", metavar="MODEL", help="the checkpoint's folder, or a file")
    model.add_argument("--model-path", type=Path, dest="model_path", metavar="MODEL", help="the same, as an option")
    parser.add_argument(
        "-o",
        "--output-path",
        type=Path,
        metavar="FILE",
        help="the file to write (default: here, named after the model)",
    )
    parser.add_argument(
        "--type",
        "--quantize",
        type=_type_key,
        choices=("auto", *_TYPES),
        default="auto",
        help="of the matrices, or the mixture of types (q4_k: q4_k_m; default: what most of the checkpoint has)",
    )
    parser.add_argument(
        "--router-precision", choices=ROUTER_TYPES, default="fp32", help="of the routers (default: %(default)s)"
    )
    parser.add_argument(
        "--calibration",
        "--imatrix",
        type=Path,
        nargs="?",
        const=OWN_TEXTS,
        metavar="FILE",
        help="quantise so that what matters on a text is kept best: a text file, or what `colibri calibrate` measured; "
        "without FILE English, Chinese and code that come with Colibri",
    )
    parser.add_argument(
        "--prove", action="store_true", help="let the result and its source read a text, and keep the figures in it"
    )
    parser.add_argument("--expert-count", type=int, metavar="N", help="how many experts the checkpoint must have")
    parser.add_argument(
        "--top-k", type=int, metavar="K", help="experts for each token, instead of the checkpoint's own"
    )
    parser.add_argument(
        "--router-pattern", metavar="NAME", help="the routers' tensors, {layer} for the layer, if named unusually"
    )
    parser.add_argument("--name", help="the model's name (default: from the folder's)")
    add_replace(parser)
    parser.add_argument("--dry-run", action="store_true", help="check everything, write nothing")
    parser.set_defaults(run=run)


def _type_key(text: str) -> str:
    key = text.lower()
    return _ALIASES.get(key, key)


def _calibration(path: Path | None, kind: FileType | None) -> tuple[ImportanceMatrix | None, dict[str, str] | None]:
    """What was measured, or the texts to be read.

    Raises InvalidRequestError if nothing is quantised, ColibriError for a file of another kind.
    """
    if path is None:
        return None, None
    if kind is None or kind.mixture is None:
        raise InvalidRequestError("--calibration weights quantising: say which type too, as in --quantize q4_k_m.")
    if path is OWN_TEXTS:
        return None, calibration_texts()
    return (None, calibration_texts(path)) if is_text(path) else (read_importance(path), None)


def run(options: argparse.Namespace) -> int:
    """Convert, and say what was made."""
    kind = _TYPES.get(options.type)
    importance, texts = _calibration(options.calibration, kind)
    wanted = ConversionOptions(
        type=None if kind is None or kind.mixture else kind.type,
        mixture=None if kind is None else kind.mixture,
        importance=importance,
        router_type=ROUTER_TYPES[options.router_precision],
        expert_count=options.expert_count,
        top_k=options.top_k,
        name=options.name,
        router_pattern=options.router_pattern,
    )
    job = Job("Conversion")
    with ProgressLine(job):
        done = job.run_blocking(
            lambda job: convert(
                job,
                options.model or options.model_path,
                options.output_path,
                wanted,
                calibration=texts,
                proof=sample_texts() if options.prove else None,
                replace=options.replace,
                dry_run=options.dry_run,
            )
        )
    print(_described(done))
    if done.plan.quantised_source and options.type != "auto":
        print(f"The source is quantised already ({', '.join(done.plan.quantised_source)}): what that lost stays lost.")
    if done.proof is not None:
        print(done.proof.sentence)
    if done.path is not None:
        print(done.path)
    return 0


def _described(done: Converted) -> str:
    """One line: name, architecture, parameters, experts, type and size."""
    plan = done.plan
    keys = {name: entry.value for name, entry in plan.metadata.items()}
    n_parameters = sum(math.prod(tensor.shape) for tensor in plan.tensors)
    parts = [f"{keys['general.name']}: {plan.architecture}", f"{n_parameters / 1e6:,.1f} million parameters"]
    if n_experts := keys.get(f"{plan.architecture}.expert_count"):
        parts.append(f"{n_experts} experts, {keys[f'{plan.architecture}.expert_used_count']} for each token")
    parts += [f"{len(plan.tensors)} tensors", f"{plan.kind}, {plan.n_bytes / 1e6:,.1f} MB"]
    return ", ".join(parts)
