"""The kernels of each instruction tier that this CPU has."""

from __future__ import annotations

import pytest

from engine.kernels.library import KernelLibrary, load_library
from engine.kernels.tiers import TIERS

AVAILABLE = [tier.name for tier in TIERS.values() if tier.available]


@pytest.fixture(scope="session", params=AVAILABLE)
def library(request: pytest.FixtureRequest) -> KernelLibrary:
    """Every test that takes this runs once on each tier."""
    return load_library(TIERS[request.param])


@pytest.fixture(scope="session")
def libraries() -> list[KernelLibrary]:
    """All tiers at once, the best first: for tests that hold them to each other."""
    return [load_library(TIERS[name]) for name in AVAILABLE]
