"""Matrix products of weights behind codes: those of matmul.py with the blocks of code_blocks.py."""

from __future__ import annotations

from engine.kernels import code_blocks
from engine.kernels.matmul import register_quantised

register_quantised("IQ4_NL", code_blocks.dot_iq4_nl, code_blocks.unpack_iq4_nl, "single")
register_quantised("MXFP4", code_blocks.dot_mxfp4, code_blocks.unpack_mxfp4, "single")
register_quantised("CODES4", code_blocks.dot_codes4, code_blocks.unpack_codes4, "single")
register_quantised("CODES3", code_blocks.dot_codes3, code_blocks.unpack_codes3, "halves")
register_quantised("Q2_K", code_blocks.dot_q2_k, code_blocks.unpack_q2_k, "halves")
