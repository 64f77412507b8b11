"""How a byte-level vocabulary cuts text into words before merging, by the name in `tokenizer.ggml.pre`."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import UnsupportedModelError


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Expressions (see `expressions.py`) that are applied one after another, each to the pieces that the last one left.

    Matched and unmatched stretches both become pieces.
    `ignore_merges`: a word that is a token is taken whole, whatever the merges say.
    `adds_bos`: what holds if the file does not say.
    `composes`: the text is put into Unicode's form NFC first, as the published tokenizers of these models do.
    """

    expressions: tuple[str, ...]
    ignore_merges: bool = False
    adds_bos: bool = False
    composes: bool = False


_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _SPACES
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _SPACES
_QWEN35 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + _SPACES
_BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
_SEED_CODER = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|" + _SPACES

_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + _SPACES
)
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + _SPACES
)

# The letters of scripts with two cases, as DeepSeek's first tokenizer lists them (General_Category L& of its day).
_CASED_LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7d"
    "ᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯ"
    "ꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_DEEPSEEK_LLM = (
    rf"[\r\n]|\s?[{_CASED_LETTERS}]+",  # published as two steps; as one they match the same, faster
    r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+",
    r"(?<!\s)\s+$",  # the look-behind changes no match; without it a long run of spaces takes quadratic time
    r"[一-龥ࠀ-一가-\uD7FF]+",
    r"\p{N}+",
)
_DEEPSEEK_CODER = (r"[\r\n]|\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-\uD7FF]+", r"\p{N}")
_DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    + _SPACES,
)
_KIMI_UPPER, _KIMI_LOWER = _UPPER[:-1] + r"&&[^\p{Han}]]", _LOWER[:-1] + r"&&[^\p{Han}]]"
_KIMI_K2 = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{_KIMI_UPPER}*{_KIMI_LOWER}+{_CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_KIMI_UPPER}+{_KIMI_LOWER}*{_CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _SPACES
)
_MINICPM5 = (r"\p{N}{1,3}", _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+"))
_LAGUNA = (r"[^\n]+|[\n]+", _QWEN2)
_YOUTU = (
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
    _GPT4O.replace(r"\p{N}{1,3}", r"\p{N}"),
)
_FALCON = (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")
_UNNAMED = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")
_SINGLE_DIGITS = (r"\p{N}", _GPT2)

_FAMILIES: tuple[tuple[PreTokenizer, str], ...] = (
    (PreTokenizer(_UNNAMED), "default"),
    (PreTokenizer((_GPT2,)), "gpt-2 mpt jais phi-2 trillion granite-docling exaone4 a.x-4.0 mellum gigachat"),
    (PreTokenizer((_GPT2,), composes=True), "olmo"),
    (PreTokenizer(_SINGLE_DIGITS), "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2"),
    (
        PreTokenizer((_LLAMA3,), ignore_merges=True, adds_bos=True),
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 midm-2.0 pixtral lfm2",
    ),
    (PreTokenizer((_LLAMA3,)), "dbrx smaug-bpe chatglm-bpe"),
    (PreTokenizer((_LLAMA3,), ignore_merges=True), "glm4 glm5"),
    (PreTokenizer((_QWEN2,), composes=True), "qwen2"),
    (PreTokenizer((_QWEN2,)), "deepseek-r1-qwen kormo stablelm2 megrez hunyuan solar-open grok-2"),
    (PreTokenizer((_QWEN35,)), "qwen35"),
    (PreTokenizer((_GPT4O,)), "gpt-4o llama4 kanana2 minimax-m2"),
    (PreTokenizer((_TEKKEN,), ignore_merges=True, adds_bos=True), "tekken"),
    (PreTokenizer((_BAILING,)), "bailingmoe bailingmoe2 llada-moe"),
    (PreTokenizer((_SEED_CODER,)), "seed-coder"),
    (PreTokenizer(_DEEPSEEK_LLM), "deepseek-llm"),
    (PreTokenizer(_DEEPSEEK_CODER), "deepseek-coder"),
    (PreTokenizer(_DEEPSEEK_V3), "deepseek-v3 hunyuan-dense hy_v4 joyai-llm"),
    (PreTokenizer((_KIMI_K2,)), "kimi-k2"),
    (PreTokenizer(_MINICPM5, ignore_merges=True), "minicpm5"),
    (PreTokenizer(_LAGUNA), "laguna"),
    (PreTokenizer(_YOUTU, ignore_merges=True), "youtu"),
    (PreTokenizer(_FALCON), "falcon"),
)
PRE_TOKENIZERS = {name: pre for pre, names in _FAMILIES for name in names.split()}


def pre_tokenizer_named(name: str) -> PreTokenizer:
    """The pre-tokenizer of that name; raises UnsupportedModelError for a name that is not known here."""
    try:
        return PRE_TOKENIZERS[name]
    except KeyError:
        known = ", ".join(sorted(PRE_TOKENIZERS))
        raise UnsupportedModelError(
            f"the vocabulary is cut into words by {name!r} (tokenizer.ggml.pre), which this version does not know; "
            f"it knows {known}"
        ) from None
