"""`colibri carve`: turns a dense model into one with experts, after measuring what fewer experts cost."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app.carving import Carved, carve
from app.carving_request import PASSAGES
from app.commands.progress_line import ProgressLine
from app.commands.reading_options import add_replace, add_text
from app.jobs import Job
from engine.carve import Carving

_USUAL = Carving()
_WIDTH_IN_PIPES = 200


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `carve`."""
    parser = subparsers.add_parser(
        "carve",
        help="make a mixture of experts of a dense model",
        description="Split each feed-forward network of a dense model (Llama's kind, Qwen2, Qwen3) into shared and "
        "routed experts, without training. With all of them it computes what it did before; with fewer it loses, and a "
        "table says how much. The file has a usual layout (DeepSeek-MoE's, or GLM-4.5's for Qwen).",
    )
    parser.add_argument("source", type=Path, metavar="DENSE", help="a dense GGUF model")
    parser.add_argument("-o", "--output-path", type=Path, required=True, metavar="MOE", help="the file to write")
    parser.add_argument(
        "--experts", type=int, default=_USUAL.n_experts, metavar="N", help="of a layer (default: %(default)s)"
    )
    parser.add_argument(
        "--shared", type=int, default=_USUAL.n_shared, metavar="N", help="of them for all tokens (default: %(default)s)"
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="routed experts for each token (default: all of them)")
    parser.add_argument(
        "--dense-layers",
        type=int,
        default=_USUAL.n_dense_layers,
        metavar="N",
        help="the first layers, which stay whole (default: %(default)s)",
    )
    add_text(parser, "English, Chinese and code", passages=PASSAGES)
    add_replace(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the table, write nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carve, and show what each number of experts costs."""
    carving = Carving(options.experts, options.shared, options.dense_layers, options.top_k)
    job = Job("Carving")
    with ProgressLine(job):
        carved = job.run_blocking(
            lambda job: carve(
                job,
                options.source,
                options.output_path,
                carving,
                text=options.text,
                passages=options.passages,
                replace_file=options.replace,
                dry_run=options.dry_run,
            )
        )
    Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_IN_PIPES).print(_table(carved))
    if carved.path is not None:
        print(carved.path)
    return 0


def _table(carved: Carved) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("routed experts", "of the network", "perplexity", "divergence, nats", "same token", ""):
        table.add_column(title, justify="right" if title else "left")
    table.add_row("dense", "100 %", f"{carved.losses[0].source_perplexity:.3f}", "", "", "")
    for loss in carved.losses:
        remarks = ["in the file"] if loss.top_k == carved.top_k and carved.path else []
        remarks += ["a demonstration only"] if loss.is_demonstration else []
        table.add_row(
            str(loss.top_k),
            f"{100 * loss.feed_forward_share:.0f} %",
            f"{loss.perplexity:.3f}",
            f"{loss.divergence:.2g}",
            f"{100 * loss.top_agreement:.1f} %",
            ", ".join(remarks),
        )
    return table
