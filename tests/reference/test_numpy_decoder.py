"""The NumPy decoder is a yardstick: it gives what independent implementations of the published models gave."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.numpy_decoder import NumpyDecoder
from tests.support.fixtures import Case, fixture_cases

LIMIT = 1e-3


CASES = [case for case in fixture_cases() if not case.name.endswith("split-experts")]  # the same weights again


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_logits_and_routes_are_those_of_the_fixtures(case: Case) -> None:
    decoder = NumpyDecoder(case.path)
    for prompt in case.prompts:
        logits, routes = decoder.forward(prompt.input_ids)

        np.testing.assert_allclose(logits[prompt.positions], prompt.logits, rtol=LIMIT, atol=LIMIT)
        if prompt.router_idx is not None and routes is not None:
            np.testing.assert_array_equal(routes.idx, prompt.router_idx)
            np.testing.assert_allclose(routes.w, prompt.router_w, rtol=LIMIT, atol=1e-4)
