"""The architectures that dense models are carved into: which standard layout with experts computes what they do.

Shared experts stand beside the chosen ones without a gate, and the chosen ones weigh nearly 1. Of `deepseek` the
weights are a softmax over all routed experts, times their number; of `glm4moe` they are sigmoids near one half, times
two. The latter's heads rotate in halves, as Qwen's do; its biases may be zeros and its head norms may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """`source` becomes `target`, in which the feed-forward norm is called `norm`."""

    source: str
    target: str
    norm: str
    has_sigmoid_router: bool = False
    has_biases: bool = False

    def weights_scale(self, n_routed: int) -> float:
        """What experts' weights are multiplied with, so that they are nearly 1."""
        return 2.0 if self.has_sigmoid_router else float(n_routed)

    def renamed(self, tensor: str) -> str:
        """The name that a tensor of the source has in the target."""
        return tensor.replace(".ffn_norm.", f".{self.norm}.")


_NEOX = ("glm4moe", "post_attention_norm", True, True)
LAYOUTS = {
    "llama": Layout("llama", "deepseek", "ffn_norm"),
    "qwen2": Layout("qwen2", *_NEOX),
    "qwen3": Layout("qwen3", *_NEOX),
}
# Why others cannot be carved, where there is more to say than that they are not known here.
REASONS = {
    "smollm3": "its layers without positions are in no layout with experts",
    "phi3": "its fused matrices and its window are in no layout with shared experts",
}
