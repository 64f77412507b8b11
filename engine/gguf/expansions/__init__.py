"""The expansions of all tensor types that have one."""

from engine.gguf.expansions.codebook_types import CODEBOOK_TYPES
from engine.gguf.expansions.k_quants import K_QUANTS
from engine.gguf.expansions.parts import Expansions, Floats
from engine.gguf.expansions.plain import PLAIN
from engine.gguf.expansions.tables import TABLES
from engine.gguf.expansions.ternary import TERNARY

EXPANSIONS: Expansions = PLAIN | K_QUANTS | TABLES | CODEBOOK_TYPES | TERNARY

__all__ = ["EXPANSIONS", "Floats"]
