"""Compiles kernels to object code: `python -m engine.kernels.build TIER FOLDER {kernels,families} NAME ... < QUEUE`.

Runs in processes of their own, so that the program never imports Numba and its window never waits for a compiler.
The processes share a queue, a pipe of bytes on their standard input: who reads a byte builds the group of kernels with
that number (a number beyond the last means that all is taken). Each prints one line per kernel, which the parent reads
as progress.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

FAMILIES = (  # those with the longest to compile first, so that the processes end together
    "attention",
    "merging",
    "sampling",
    "latent",
    "walk",
    "words",
    "encode_scaled",
    "encode_affine",
    "encode_tables",
    "matmul",
    "code_matmul",  # the code_ modules register kernels of the families matmul, repack and embed
    "routing",
    "foresight",
    "router_scores",
    "delta",
    "norm",
    "ffn",
    "tokens",
    "sparse_mixer",
    "conv",
    "repack",
    "code_repack",
    "rope",
    "observe",
    "stream",
    "embed",
    "code_embed",
    "activation",
    "encode_floats",
    "heads",
)


def build(tier_name: str, folder: Path, names: Collection[str], *, whole_families: bool) -> None:
    """Write `NAME.o`, and after it its entry `NAME.json`, for the kernels `names` of the groups taken from the queue.

    whole_families: each name stands for all kernels of its family.
    """
    from engine.kernels.tiers import TIERS  # noqa: PLC0415  (before Numba, which reads the variables set here)

    tier = TIERS[tier_name]
    os.environ.update(
        COLIBRI_BUILD_TIER=tier.name,
        NUMBA_CPU_NAME=tier.cpu_name,
        NUMBA_CPU_FEATURES=tier.features,
        NUMBA_NUM_THREADS="1",
    )
    from engine.kernels.registry import KERNELS  # noqa: PLC0415
    from engine.kernels.sources import sources_digest  # noqa: PLC0415

    sources: dict[str, str] = {}
    for family in FAMILIES:
        importlib.import_module(f"engine.kernels.{family}")
        digest = sources_digest(f"engine.kernels.{family}", tier)
        sources |= {name: digest for name in KERNELS if name not in sources}
    wanted = _wanted(names, KERNELS, whole_families)
    earlier = _earlier_builds(folder, tier.name, wanted)
    for kernel in _taken_from_queue(_groups(wanted)):
        place = earlier.get((kernel.name, sources[kernel.name]))
        entry, code = _compiled_before(kernel.name, *place) if place else _compile(kernel)
        (folder / f"{kernel.name}.o").write_bytes(code)
        entry |= {"operands": kernel.operands, "sources": sources[kernel.name]}
        (folder / f"{kernel.name}.json").write_text(json.dumps(entry), encoding="utf-8")
        print(f"built {kernel.name} {len(wanted)}", flush=True)


def _wanted(names: Collection[str], kernels: dict[str, Any], whole_families: bool) -> dict[str, Any]:
    from engine.errors import KernelBuildError  # noqa: PLC0415

    if unknown := set(names) - kernels.keys():
        raise KernelBuildError(f"There are no kernels called {', '.join(sorted(unknown))}.")
    if not whole_families:
        return {name: kernels[name] for name in names}
    homes = {kernels[name].function.__module__ for name in names}
    return {name: kernel for name, kernel in kernels.items() if kernel.function.__module__ in homes}


def _compile(kernel: Any) -> tuple[dict[str, Any], bytes]:
    from engine.kernels.object_code import require_known_symbols  # noqa: PLC0415
    from engine.kernels.registry import compile_entry  # noqa: PLC0415

    compiled = next(iter(compile_entry(kernel).overloads.values()))
    code = compiled.library._get_compiled_object()
    require_known_symbols(kernel.name, code)
    return {"symbol": compiled.fndesc.llvm_func_name, "sha256": hashlib.sha256(code).hexdigest()}, code


def _earlier_builds(
    folder: Path, tier_name: str, names: Collection[str]
) -> dict[tuple[str, str], tuple[Path, dict[str, Any]]]:
    """Those of the kernels that were built before, for another version, by their name and the digest of sources."""
    found: dict[tuple[str, str], tuple[Path, dict[str, Any]]] = {}
    for path in folder.parent.glob(f"{tier_name}-*/index.json"):
        try:
            index = json.loads(path.read_bytes())
            for name in index.keys() & names:
                entry = index[name]
                code = (path.parent / f"{name}.o").read_bytes()
                if hashlib.sha256(code).hexdigest() == entry["sha256"] and entry["symbol"].encode() in code:
                    found[name, entry["sources"]] = path.parent, entry
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            continue  # damaged, or of a version that kept no digests: compiled again
    return found


def _compiled_before(name: str, folder: Path, entry: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    return entry, (folder / f"{name}.o").read_bytes()


def _groups(kernels: dict[str, Any]) -> list[list[Any]]:
    """Kernels that share parts, to be compiled by one process: a family, or what serves one weight type."""
    groups: dict[str, list[Any]] = {}
    for family in FAMILIES:
        for kernel in kernels.values():
            if kernel.function.__module__ == f"engine.kernels.{family}":
                name = kernel.name.removesuffix("_f32") if family in ("matmul", "repack", "embed") else family
                groups.setdefault(name, []).append(kernel)
    return list(groups.values())


def _taken_from_queue(groups: list[list[Any]]) -> Iterator[Any]:
    while (number := os.read(sys.stdin.fileno(), 1)) and number[0] < len(groups):
        yield from groups[number[0]]


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2]), sys.argv[4:], whole_families=sys.argv[3] == "families")
