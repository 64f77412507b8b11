"""Carves a dense model into experts: each feed-forward network becomes shared and routed experts and a router.

    activations = observe("dense.gguf", texts)
    write_carved("dense.gguf", "moe.gguf", activations, Carving(n_experts=16, n_shared=4))

With all routed experts chosen the result computes what the dense model does, up to rounding. With fewer it loses, and
`measure` says how much: nothing is trained here.
"""

from engine.carve.activations import observe
from engine.carve.dense import check_dense
from engine.carve.measure import Loss, measure
from engine.carve.options import Carving
from engine.carve.write import write_carved

__all__ = ["Carving", "Loss", "check_dense", "measure", "observe", "write_carved"]
