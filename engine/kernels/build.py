"""Compiles the kernels of one tier to object code: `python -m engine.kernels.build TIER FOLDER PART PARTS`.

Runs in a process of its own, so that the program never imports Numba and its window never waits for a compiler.
Prints one line per kernel, which the parent reads as progress.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from pathlib import Path

FAMILIES = (
    "norm",
    "activation",
    "embed",
    "repack",
    "matmul",
    "rope",
    "attention",
    "routing",
    "ffn",
    "walk",
    "sampling",
)


def build(tier_name: str, folder: Path, part: int, n_parts: int) -> None:
    """Write `NAME.o` for every `n_parts`-th kernel and an index of what was written to `folder`."""
    from engine.kernels.tiers import TIERS  # noqa: PLC0415  (before Numba, which reads the variables set here)

    tier = TIERS[tier_name]
    os.environ.update(
        COLIBRI_BUILD_TIER=tier.name,
        NUMBA_CPU_NAME=tier.cpu_name,
        NUMBA_CPU_FEATURES=tier.features,
        NUMBA_NUM_THREADS="1",
    )
    for family in FAMILIES:
        importlib.import_module(f"engine.kernels.{family}")
    from engine.kernels.registry import KERNELS, compile_entry  # noqa: PLC0415

    index = {}
    for kernel in sorted(KERNELS.values(), key=lambda k: k.name)[part::n_parts]:
        compiled = next(iter(compile_entry(kernel).overloads.values()))
        code = compiled.library._get_compiled_object()
        (folder / f"{kernel.name}.o").write_bytes(code)
        index[kernel.name] = {
            "symbol": compiled.fndesc.llvm_func_name,
            "sha256": hashlib.sha256(code).hexdigest(),
            "operands": kernel.operands,
        }
        print(f"built {kernel.name} {len(KERNELS)}", flush=True)
    (folder / f"index.{part}.json").write_text(json.dumps(index), encoding="utf-8")


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
