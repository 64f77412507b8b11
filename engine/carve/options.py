"""What a dense model is to be carved into."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import InvalidRequestError

_COLUMNS = 32  # a multiple of this many neurons makes an expert, for kernels work in such blocks


@dataclass(frozen=True, slots=True)
class Carving:
    """n_experts: parts of equal size of each feed-forward network, of which `n_shared` work for every token.

    n_dense_layers: the first layers, which stay whole. top_k: routed experts for each token; None: all of them.
    """

    n_experts: int = 16
    n_shared: int = 4
    n_dense_layers: int = 2
    top_k: int | None = None

    @property
    def n_routed(self) -> int:
        return self.n_experts - self.n_shared

    def check(self, n_feed_forward: int, n_layers: int) -> None:
        """Raise InvalidRequestError unless a network of `n_feed_forward` neurons can be cut so."""
        if not 2 <= self.n_experts <= 512 or n_feed_forward % (_COLUMNS * self.n_experts):
            fits = [n for n in range(2, 513) if n_feed_forward % (_COLUMNS * n) == 0]
            raise InvalidRequestError(
                f"A feed-forward network of {n_feed_forward:,} neurons cannot be cut into {self.n_experts} experts of "
                f"a multiple of {_COLUMNS} neurons. Possible are {', '.join(map(str, fits)) or 'none'}."
            )
        if not 1 <= self.n_shared <= self.n_experts - 2:
            raise InvalidRequestError(
                f"Of {self.n_experts} experts 1 to {self.n_experts - 2} may be shared, not {self.n_shared}."
            )
        if not 0 <= self.n_dense_layers < n_layers:
            raise InvalidRequestError(
                f"Of {n_layers} layers 0 to {n_layers - 1} may stay dense, not {self.n_dense_layers}."
            )
        if self.top_k is not None and not 1 <= self.top_k <= self.n_routed:
            raise InvalidRequestError(f"A token may have 1 to {self.n_routed} routed experts, not {self.top_k}.")
