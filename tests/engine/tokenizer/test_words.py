"""Words are cut as Oniguruma, which published tokenizers use, cuts them with the same expressions."""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from engine.kernels.library import load_library
from engine.kernels.tiers import TIERS, choose_tier
from engine.tokenizer.expressions import compile_expressions
from engine.tokenizer.pre_tokenizers import PRE_TOKENIZERS
from engine.tokenizer.unicode import CATEGORIES, N_CHARACTERS, category_runs
from engine.tokenizer.words import WordCutter

# Letters with and without case, marks, digits and numbers of several kinds, white space, signs, contractions.
AWKWARD = "aBzZ1٣9½Ⅷ \n\r\t\u3000\xa0'.,é你龥가がヵก🚀SſstT'll'RE$^|`-/_<>=~ǅʰ\u0301\u0903‘。ａ₂\x00\x7f\u200d"
TEXTS = st.text(st.sampled_from(AWKWARD), max_size=40) | st.text(max_size=30)
BY_EXPRESSIONS = {pre.expressions: name for name, pre in reversed(PRE_TOKENIZERS.items())}
NAMES = sorted(BY_EXPRESSIONS.values())


def words_of(text: str, expressions: tuple[str, ...], tier: str | None = None) -> list[str]:
    data = text.encode()
    ends = cutter_of(expressions, tier).ends([text]).tolist() if text else []
    return [data[begin:end].decode() for begin, end in pairwise([0, *ends])]


@cache
def cutter_of(expressions: tuple[str, ...], tier: str | None) -> WordCutter:
    return WordCutter(load_library(choose_tier(tier)), expressions)


@cache
def oniguruma_of(expressions: tuple[str, ...]) -> pre_tokenizers.Sequence:
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(each), "isolated") for each in expressions])


def by_oniguruma(text: str, expressions: tuple[str, ...]) -> list[str]:
    return [word for word, _ in oniguruma_of(expressions).pre_tokenize_str(text)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(text=TEXTS)
def test_words_are_those_of_oniguruma(name: str, text: str) -> None:
    expressions = PRE_TOKENIZERS[name].expressions
    assert words_of(text, expressions) == by_oniguruma(text, expressions)


@pytest.mark.parametrize("name", NAMES)
def test_long_runs_are_cut_as_by_oniguruma(name: str) -> None:
    expressions = PRE_TOKENIZERS[name].expressions
    for run in (" ", "\n", " \n", "A", "a", "9", "你", "-", "\t ", "Aa", "\u0301", "'s"):
        for text in (run * 300, "x" + run * 300 + "x", run * 100 + "\r\n" + run * 100 + "."):
            assert words_of(text, expressions) == by_oniguruma(text, expressions)


def test_texts_that_stand_together_are_cut_as_if_they_stood_alone() -> None:
    texts = ["ab c", "d", " ", " e\u4f60", "12", "34 ", "\n", "x"]
    for expressions in BY_EXPRESSIONS:
        ends = cutter_of(expressions, None).ends(texts).tolist()
        data = "".join(texts).encode()
        together = [data[begin:end].decode() for begin, end in pairwise([0, *ends])]
        assert together == [word for text in texts for word in by_oniguruma(text, expressions)]


@pytest.mark.parametrize("tier", [tier.name for tier in TIERS.values() if tier.available])
def test_every_tier_cuts_the_same_words(tier: str) -> None:
    for expressions in BY_EXPRESSIONS:
        assert words_of(AWKWARD * 20, expressions, tier) == words_of(AWKWARD * 20, expressions)


def test_categories_agree_with_pythons_for_characters_that_it_knows() -> None:
    starts, categories = category_runs()
    of_all = np.repeat(categories, np.diff(starts, append=N_CHARACTERS))
    known = [code for code in range(0x30000) if unicodedata.category(chr(code)) != "Cn"]
    differ = [code for code in known if CATEGORIES[of_all[code]] != unicodedata.category(chr(code))]
    assert len(known) > 120_000
    assert len(differ) < 50  # a few characters change from one version of Unicode to the next


@pytest.mark.parametrize(
    "expression", ["a(?=b)", "(ab)+", "a||b", "", r"\w+", r"\p{Greek}", "(?i:a|b)c", "[b-a]", "a+?b{2", "a*(?i:b|c)"]
)
def test_expressions_that_are_not_known_are_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"not known|empty|range|repetition|group"):
        compile_expressions((expression,))
