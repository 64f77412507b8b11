"""Carves a dense model into experts: each feed-forward network becomes shared and routed experts and a router.

    activations = observe("dense.gguf", texts)
    write_carved("dense.gguf", "moe.gguf", activations, Carving(n_experts=16, n_shared=4))

With all routed experts chosen the result computes what the dense model does, up to rounding. With fewer it loses, and
`measure` says how much: nothing is trained here.
"""

from engine.carve.activations import observe
from engine.carve.dense import check_dense
from engine.carve.measure import measure
from engine.carve.options import Carving
from engine.carve.record import Loss, loss_keys, losses_of
from engine.carve.write import write_carved

__all__ = ["Carving", "Loss", "check_dense", "loss_keys", "losses_of", "measure", "observe", "write_carved"]
