"""`colibri prove`: how far a converted model is from its source, measured on a text and kept in its file."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from app.commands.progress_line import ProgressLine
from app.commands.reading_options import add_text
from app.jobs import Job
from app.proving import prove


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `prove`."""
    parser = subparsers.add_parser(
        "prove",
        help="compare a converted model with its source",
        description="Let a model and its source (a checkpoint's folder, or a GGUF file, best of F16 or BF16) read the "
        "same text, and say how often and how far they differ. Neither has to fit into memory. The figures are "
        "written into the model's file.",
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="what the model was made of")
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model")
    add_text(parser, "one that calibration does not read", passages=6)
    parser.add_argument("--no-store", action="store_true", help="only show the figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, and say what was found."""
    job = Job("Proof")
    with ProgressLine(job):
        proof = job.run_blocking(
            lambda job: prove(
                job,
                options.source,
                options.model,
                options.text,
                passages=options.passages,
                keep=not options.no_store,
            )
        )
    if options.json:
        print(json.dumps(asdict(proof) | {"sentence": proof.sentence}, indent=2))
        return 0
    print(proof.sentence)
    print(f"99 % of the positions diverge by less than {proof.divergence_99:.3g} nats.")
    if proof.route_agreement:
        print("Same experts, layer by layer: " + ", ".join(f"{100 * share:.1f} %" for share in proof.route_agreement))
    return 0
