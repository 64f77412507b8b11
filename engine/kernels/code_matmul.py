"""Matrix products of weights behind codes: those of matmul.py with the types of code_weights.py."""

from __future__ import annotations

from engine.kernels.code_weights import CODED_TYPES
from engine.kernels.matmul import register_quantised

for _name, _weight in CODED_TYPES.items():
    register_quantised(_name, _weight)
