"""The kernels of each instruction tier that this CPU has."""

from __future__ import annotations

import importlib

import pytest

from engine.kernels.build import FAMILIES
from engine.kernels.library import KernelLibrary, load_library
from engine.kernels.registry import KERNELS
from engine.kernels.tiers import TIERS

AVAILABLE = [tier.name for tier in TIERS.values() if tier.available]


MANY_TESTS = 500  # of a run that needs about all kernels: compiled at once, by as many processes as there are cores


@pytest.fixture(scope="session", params=AVAILABLE)
def library(request: pytest.FixtureRequest) -> KernelLibrary:
    """Every test that takes this runs once on each tier."""
    library = load_library(TIERS[request.param])
    if len(request.session.items) > MANY_TESTS:
        for family in FAMILIES:
            importlib.import_module(f"engine.kernels.{family}")
        library.require(KERNELS)
    return library


@pytest.fixture(scope="session")
def libraries() -> list[KernelLibrary]:
    """All tiers at once, the best first: for tests that hold them to each other."""
    return [load_library(TIERS[name]) for name in AVAILABLE]
