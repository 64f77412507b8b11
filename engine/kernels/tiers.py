"""The instruction-set tiers that kernels are compiled for, and the choice of one for this CPU."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from engine.errors import KernelBuildError
from engine.hardware.cpu import cpu_flags, may_use_tiles

ISA_VARIABLE = "COLIBRI_ISA"


@dataclass(frozen=True, slots=True)
class Tier:
    """A named target: kernels are compiled for `cpu_name` (LLVM's name), so a cache outlives a change of CPU."""

    name: str
    cpu_name: str
    features: str
    needs: frozenset[str]  # flags in /proc/cpuinfo's spelling

    @property
    def available(self) -> bool:
        return self.needs <= cpu_flags() and ("amx_tile" not in self.needs or may_use_tiles())


_AVX2 = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2"})
_AMX = frozenset({"amx_tile", "amx_int8"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512_vnni"}

TIERS = {
    tier.name: tier
    for tier in (
        Tier("amx", "cascadelake", "+amx-tile,+amx-int8,+fast-dpwssd", frozenset(_AVX512 | _AMX)),
        Tier("avx512", "cascadelake", "+fast-dpwssd", frozenset(_AVX512)),
        Tier("avx2", "haswell", "", _AVX2),
        Tier("generic", "generic" if platform.machine() not in ("x86_64", "AMD64") else "x86-64", "", frozenset()),
    )
}


def choose_tier(wanted: str | None = None) -> Tier:
    """The tier called `wanted`, else the one that COLIBRI_ISA names, else the best that this CPU has.

    Raises KernelBuildError for an unknown name and for a tier whose instructions this CPU lacks.
    """
    name = wanted or os.environ.get(ISA_VARIABLE)
    if not name:
        return next(tier for tier in TIERS.values() if tier.available)
    if name not in TIERS:
        raise KernelBuildError(
            f"The instruction tier {name!r} is unknown; expected one of {', '.join(TIERS)}. "
            f"Unset {ISA_VARIABLE} to let the program choose."
        )
    tier = TIERS[name]
    if not tier.available:
        missing = ", ".join(sorted(tier.needs - cpu_flags()))
        raise KernelBuildError(
            f"The instruction tier {name!r} was asked for, but this CPU lacks {missing}. "
            f"Unset {ISA_VARIABLE} to let the program choose."
        )
    return tier
