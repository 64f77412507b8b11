"""Published tokenizer.json files, read by `tokenizers`, give the same ids as the vocabulary in GGUF's form does.

Runs over the folder that COLIBRI_TOKENIZERS names: files `PRE.NAME.json`, PRE being the pre-tokenizer's name in GGUF
(`qwen2.qwen3.json`, `deepseek-v3.r1.json`, `gpt-4o.gpt-oss.json`).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import tokenizers

from engine.tokenizer import Tokenizer

ENGLISH = "It's what we'd said: \"I'LL pay $1,234,567.89 on 2024-12-31\", HelloWorld and XMLHttpRequest... naïve café; "
CHINESE = "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？2024年１２月「かな」カタカナ 한국어 ไทย हिन्दी العربية "
SIGNS = "🚀👩‍👩‍👧‍👦🇩🇪👍🏽❤️ é ñ ﬁ ǅ ẞ ſ İı Σς ½ Ⅷ <|x|> </s> == ++ // \\n _a "


def metadata_of(path: Path) -> dict[str, Any]:
    """The vocabulary as a GGUF file has it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    texts = dict(content["model"]["vocab"]) | {added["content"]: added["id"] for added in content["added_tokens"]}
    n_tokens = max(texts.values()) + 1
    tokens, kinds = [f"[PAD{token_id}]" for token_id in range(n_tokens)], np.full(n_tokens, 5, np.int32)
    for text, token_id in texts.items():
        tokens[token_id], kinds[token_id] = text, 1
    for added in content["added_tokens"]:
        kinds[added["id"]] = 3 if added["special"] else 4
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": path.name.split(".")[0],
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [m if isinstance(m, str) else " ".join(m) for m in content["model"]["merges"]],
    }


def texts() -> Iterator[str]:
    """English, Chinese, code, emoji, control characters, long runs of spaces, and what random bytes decode to."""
    random, everything = Random(7), ENGLISH + CHINESE + SIGNS
    code = Path(argparse.__file__).read_text(encoding="utf-8")
    yield from (ENGLISH * 50, CHINESE * 50, SIGNS * 50, code)
    for _ in range(200):
        yield "".join(
            random.choice("ab \x7f\x80\x85\xa0\u200b\u2028\ufeff" + chr(random.randrange(32))) for _ in "x" * 40
        )
        yield "".join(random.choice(["\n", "\t", "\r\n", "x", "\u3000"]) + " " * random.randrange(200) for _ in "abcde")
        yield random.randbytes(random.randrange(1, 200)).decode(errors="replace")
        yield "".join(random.choices(everything, k=80))
        yield "".join(map(chr, random.choices([*range(0xD800), *range(0xE000, 0x30000)], k=60)))
        start = random.randrange(len(code))
        yield code[start : start + random.randrange(1, 500)]


FOLDER = os.environ.get("COLIBRI_TOKENIZERS")

if PATHS := sorted(Path(FOLDER).glob("*.json")) if FOLDER else []:

    @pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
    def test_published_tokenizers_give_the_same_ids(path: Path) -> None:
        reference = tokenizers.Tokenizer.from_file(str(path))
        tokenizer = Tokenizer.from_metadata(metadata_of(path))
        for text in texts():
            expected = reference.encode(text, add_special_tokens=False).ids
            assert tokenizer.encode(text, add_special=False, parse_special=True) == expected, repr(text[:200])
