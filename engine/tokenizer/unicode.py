"""The characters of Unicode 16 by general category, as runs of neighbours that share one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

N_CHARACTERS = 0x110000
_NAMES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn"
CATEGORIES = tuple(_NAMES.split())
DATA = Path(__file__).with_name("unicode_categories.npz")

WHITE_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
HAN = (
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d"
    "\ufa70-\ufad9\U00016fe2\U00016fe3\U00016ff0\U00016ff1\U00020000-\U0002a6df\U0002a700-\U0002b739\U0002b740-\U0002b81d"
    "\U0002b820-\U0002cea1\U0002ceb0-\U0002ebe0\U0002ebf0-\U0002ee5d\U0002f800-\U0002fa1d\U00030000-\U0003134a"
    "\U00031350-\U000323af"
)


@cache
def category_runs() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each run starts, and its category as an index into CATEGORIES; made by
    `python -m tests.engine.tokenizer.make_unicode_categories`."""
    with np.load(DATA) as arrays:
        return arrays["starts"].astype(np.int64), arrays["categories"]
