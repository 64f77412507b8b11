"""Qwen3.5-MoE (Yang et al. 2026): Qwen3-Next, its value heads in another order and its small projections apart."""

from __future__ import annotations

from engine.models import qwen3next
from engine.models.builder import Builder
from engine.models.keys import Keys


def build(b: Builder, keys: Keys) -> None:
    qwen3next.build(b, keys, is_tiled=True)
