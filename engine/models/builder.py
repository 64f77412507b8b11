"""What an architecture file calls: each method adds the operations of one well-known part of a decoder."""

from __future__ import annotations

from engine.models.latent_attention import LatentAttention
from engine.models.mixture import Mixture
from engine.models.recurrent import Recurrent


class Builder(LatentAttention, Recurrent, Mixture):
    """Turns an architecture's description into a plan: buffers, operations and stages of a decoder, layer by layer."""
