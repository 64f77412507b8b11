"""The tokenizer of a model: text to ids and ids to text, as the GGUF file says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from engine.errors import ModelFormatError, TokenizerError, UnsupportedModelError
from engine.kernels.library import KernelLibrary, load_library
from engine.kernels.tiers import choose_tier
from engine.tokenizer.byte_level import MERGES_KEY, ByteLevelEncoder
from engine.tokenizer.pre_tokenizers import pre_tokenizer_named
from engine.tokenizer.sentencepiece import SentencePieceEncoder
from engine.tokenizer.special import SpecialTokens
from engine.tokenizer.stream import StreamDecoder
from engine.tokenizer.vocabulary import TokenKind, Vocabulary, number_array, strings, token_id_under

KERNELS = ("index_tokens", "index_merges", "merge_words", "cut_words")
MODEL_KEY = "tokenizer.ggml.model"
SCORES_KEY = "tokenizer.ggml.scores"

_FOREIGN_KINDS = {
    "bert": ", WordPiece, of models that make embeddings",
    "t5": ", Unigram",
    "rwkv": ", the longest match",
    "plamo2": ", Unigram over a table of suffixes",
    "gemma4": ", BPE over characters",
}

# Control tokens that end a turn or a text, by what they are called in published vocabularies.
_END_TEXTS = (
    "<|im_end|> <|eot_id|> <|eom_id|> <|end|> <|endoftext|> <|end_of_text|> <end_of_turn> <end_of_utterance> </s> "
    "<eos> <EOT> _<EOT> [EOT] [EOS] <|return|> <|call|> <｜end▁of▁sentence｜> <|END_OF_TURN_TOKEN|> <|eos|> [e~["
)
# Where a vocabulary has both of these, <|end|> only closes one of several messages of an answer.
_ANSWER_ENDS = frozenset({"<|return|>", "<|call|>"})
_NEVER_STRIPPING = frozenset({"<unk>", "<s>", "<|endoftext|>"})


class Encoder(Protocol):
    """Encodes stretches of text that hold no special tokens; each begins a text or follows a special token."""

    def encode(self, stretches: Sequence[str]) -> list[list[int]]: ...


class Tokenizer:
    """Text to token ids and back.

    Making one is cheap: the tables for encoding are built when `encode` is first called, or by `prepare`
    (from any thread; some 10 ms for 49,000 tokens, 80 ms for 150,000). All methods may be called from any thread.
    """

    def __init__(
        self, metadata: Mapping[str, Any], vocabulary: Vocabulary, build: Callable[[], Encoder], *, adds_bos: bool
    ) -> None:
        """Use `from_metadata`. `adds_bos` holds if the file does not say."""
        self._vocabulary = vocabulary
        self._build = build
        self._encoder: Encoder | None = None
        self._lock = threading.Lock()
        self._is_scored = not vocabulary.byte_level
        self.n_vocab = len(vocabulary)
        control = vocabulary.of_kind(TokenKind.CONTROL)
        self.bos_id = token_id_under(metadata, "tokenizer.ggml.bos_token_id", self.n_vocab)
        self.eos_id = token_id_under(metadata, "tokenizer.ggml.eos_token_id", self.n_vocab)
        if self._is_scored:
            self.bos_id = control.get("<s>") if self.bos_id is None else self.bos_id
            self.eos_id = control.get("</s>") if self.eos_id is None else self.eos_id
        self.adds_bos = self.bos_id is not None and bool(metadata.get("tokenizer.ggml.add_bos_token", adds_bos))
        self.adds_eos = self.eos_id is not None and bool(metadata.get("tokenizer.ggml.add_eos_token", False))
        self.adds_space_prefix = self._is_scored and _adds_space_prefix(metadata)
        self.end_ids = self._find_end_ids(metadata, control)
        user_defined = vocabulary.of_kind(TokenKind.USER_DEFINED)
        signs = vocabulary.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)
        strips = self._find_stripping(metadata, user_defined | signs)
        self._always = SpecialTokens(user_defined, strips)
        self._on_request = SpecialTokens(user_defined | signs, strips, frozenset(signs.values()))

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], library: KernelLibrary | None = None) -> Tokenizer:
        """The tokenizer that a GGUF file's metadata describe.

        `library`: the kernels to encode with; without it those of the best tier are loaded (and compiled, if this
        machine has not done so before) when text is first encoded.

        Raises UnsupportedModelError for a kind of vocabulary or a pre-tokenizer that is not known, naming those
        that are, and ModelFormatError where the metadata contradict themselves.
        """
        kind = metadata.get(MODEL_KEY)
        if kind == "gpt2":
            pre = pre_tokenizer_named(metadata.get("tokenizer.ggml.pre", "default"))
            vocabulary = Vocabulary.from_metadata(metadata, byte_level=True)
            if MERGES_KEY not in metadata:
                raise ModelFormatError(f"expected merges in {MERGES_KEY} beside a gpt2 vocabulary, found nothing")
            merges = strings(metadata, MERGES_KEY)
            return cls(
                metadata,
                vocabulary,
                lambda: ByteLevelEncoder(_ready(library), vocabulary, merges, pre),
                adds_bos=pre.adds_bos,
            )
        if kind == "llama":
            vocabulary = Vocabulary.from_metadata(metadata, byte_level=False)
            scores = number_array(metadata, SCORES_KEY, len(vocabulary), np.float32)
            if scores is None:
                raise ModelFormatError(f"expected a score for each token in {SCORES_KEY}, found nothing")
            unknown_id = token_id_under(metadata, "tokenizer.ggml.unknown_token_id", len(vocabulary))
            adds_space = _adds_space_prefix(metadata)
            return cls(
                metadata,
                vocabulary,
                lambda: SentencePieceEncoder(_ready(library), vocabulary, scores, unknown_id, adds_space=adds_space),
                adds_bos=True,
            )
        raise UnsupportedModelError(
            f"the vocabulary is of the kind {kind!r}{_FOREIGN_KINDS.get(str(kind), '')} ({MODEL_KEY}), which this "
            "version does not know; it knows gpt2 (byte-level BPE) and llama (SentencePiece BPE)"
        )

    def prepare(self) -> None:
        """Build the tables for encoding now, so that the first `encode` need not."""
        self._ready()

    def encode(
        self, text: str, *, add_special: bool = True, parse_special: bool = False, marks: Sequence[int] = ()
    ) -> list[int]:
        """The ids of a text.

        `add_special`: put BOS before and EOS behind, as the file says. `parse_special`: control tokens that are
        spelled in the text become their ids (for rendered templates); otherwise they are ordinary text. User-defined
        tokens always become their ids. `marks`: rising places in the text; a control token that begins at one, or has
        one inside, is ordinary text whatever `parse_special` says (see `marks.py`). Raises TokenizerError for text
        that is no valid Unicode.
        """
        _check_unicode(text)
        encoder = self._ready()
        ids = [self.bos_id] if add_special and self.adds_bos and self.bos_id is not None else []
        parts = list((self._on_request if parse_special else self._always).split(text, marks))
        stretches = [part for part in parts if isinstance(part, str)]
        encoded = iter(encoder.encode(stretches) if stretches else ())
        for part in parts:
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += next(encoded)
        if add_special and self.adds_eos and self.eos_id is not None:
            ids.append(self.eos_id)
        return ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = True, continues: bool = False) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD.

        A vocabulary that puts a space before a text loses it again here, unless the ids continue a text
        (`continues`). No other white space is touched.
        """
        known, n_vocab = self._vocabulary, self.n_vocab
        pieces = []
        for token_id in ids:
            if not 0 <= token_id < n_vocab:
                self._check(token_id)
            if not (skip_special and known.is_special(token_id)):
                pieces.append(known.token_bytes(token_id))
        data = b"".join(pieces)
        if self.adds_space_prefix and not continues:
            data = data.removeprefix(b" ")
        return data.decode("utf-8", "replace")

    def stream(self, *, skip_special: bool = True, continues: bool = False) -> StreamDecoder:
        """A decoder for ids that arrive one by one; the arguments are those of `decode`."""
        drops_first_space = self.adds_space_prefix and not continues
        return StreamDecoder(self, skip_special=skip_special, drops_first_space=drops_first_space)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for, a part of a character perhaps; special tokens give their name."""
        self._check(token_id)
        return self._vocabulary.token_bytes(token_id)

    def token_text(self, token_id: int) -> str:
        """The token as the file spells it."""
        self._check(token_id)
        return self._vocabulary.tokens[token_id]

    def is_special(self, token_id: int) -> bool:
        """Whether a token is a sign to the model rather than text."""
        self._check(token_id)
        return self._vocabulary.is_special(token_id)

    def control_tokens(self) -> frozenset[str]:
        """The texts of the tokens that are signs to the model."""
        return frozenset(self._vocabulary.of_kind(TokenKind.CONTROL))

    def sign_tokens(self) -> frozenset[str]:
        """The texts of all tokens that only `parse_special` finds: the control tokens and the unknown one."""
        return frozenset(self._vocabulary.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN))

    def user_defined_tokens(self) -> frozenset[str]:
        """The texts of the tokens that somebody added to the vocabulary and that are shown as they are."""
        return frozenset(self._vocabulary.of_kind(TokenKind.USER_DEFINED))

    def _check(self, token_id: int) -> None:
        if not 0 <= token_id < self.n_vocab:
            raise TokenizerError(f"expected a token id from 0 to {self.n_vocab - 1}, found {token_id}")

    def _ready(self) -> Encoder:
        with self._lock:
            if self._encoder is None:
                self._encoder = self._build()
            return self._encoder

    def _find_end_ids(self, metadata: Mapping[str, Any], control: Mapping[str, int]) -> frozenset[int]:
        keys = (f"tokenizer.ggml.{name}_token_id" for name in ("eot", "eom"))
        named = {self.eos_id, *(token_id_under(metadata, key, self.n_vocab) for key in keys)}
        texts = set(_END_TEXTS.split())
        if control.keys() >= _ANSWER_ENDS:
            texts.discard("<|end|>")
        named.update(token_id for text, token_id in control.items() if text in texts)
        return frozenset(token_id for token_id in named if token_id is not None)

    def _find_stripping(self, metadata: Mapping[str, Any], special: Mapping[str, int]) -> frozenset[int]:
        """The special tokens that swallow white space behind them, which GGUF has no key for: those of Phi-3."""
        is_phi3 = metadata.get("general.architecture") in ("phi3", "phimoe")
        if not (is_phi3 and self._is_scored):
            return frozenset()
        return frozenset(token_id for text, token_id in special.items() if text not in _NEVER_STRIPPING)


def _ready(library: KernelLibrary | None) -> KernelLibrary:
    library = library or load_library(choose_tier())
    library.require(KERNELS)
    return library


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"expected valid Unicode, found half of a surrogate pair, {text[error.start]!r}, at character "
            f"{error.start} of the text; remove it"
        ) from None


def _adds_space_prefix(metadata: Mapping[str, Any]) -> bool:
    return bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
