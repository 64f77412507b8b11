"""`colibri calibrate`: measures on a text which inputs of a model's matrices matter, for a better quantisation."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.calibration import measure_importance
from app.commands.progress_line import ProgressLine
from app.commands.reading_options import add_replace, add_text
from app.jobs import Job

_FEW_INPUTS = 32


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `calibrate`."""
    parser = subparsers.add_parser(
        "calibrate",
        help="measure which inputs of a model's matrices matter",
        description="Let a model read a text, and write how large the inputs of each matrix are, expert by expert: an "
        "importance matrix (imatrix, as GGUF), which quantisers weigh their rounding by.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a GGUF file; best one of F16, BF16 or Q8_0")
    parser.add_argument("-o", "--output-path", type=Path, required=True, metavar="FILE", help="the file to write")
    add_text(parser, "English, Chinese and code", passages=None)
    add_replace(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, and say what was seen."""
    job = Job("Calibration")
    with ProgressLine(job):
        found = job.run_blocking(
            lambda job: measure_importance(
                job, options.model, options.output_path, options.text, n_most=options.passages, replace=options.replace
            )
        )
    print(
        f"{found.n_chunks} passages of {found.chunk_tokens} tokens, {len(found.tensors)} matrices; perplexity "
        f"{found.perplexity:.3f}"
    )
    if rare := found.rare(_FEW_INPUTS):
        print(
            f"In {len(rare)} tensors some experts were chosen fewer than {_FEW_INPUTS} times (at most "
            f"{max(rare.values())} in one); they lean on their layer's mean. A longer text tells more."
        )
    print(options.output_path)
    return 0
