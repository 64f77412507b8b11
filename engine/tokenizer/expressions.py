"""Compiles the regular expressions of pre-tokenizers into tables for the kernel that cuts text into words.

Known is what such expressions use: alternatives of sequences of characters and classes (`[...]` with ranges, `^` and
`&&`, `\\p{..}`, `\\s`, `\\S`) with greedy quantifiers, groups `(?i:...)` that stand for a whole alternative or, perhaps
optional, end one, and the assertions `(?!\\S)`, `(?<!\\s)` and `$`. The meaning is Oniguruma's (Ruby's syntax), which
published tokenizers use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from engine.kernels.text_layout import (
    MANY_CHARACTERS,
    MAX_ITEMS,
    WORD_ALTERNATIVE,
    WORD_CLASS,
    WORD_GROUP,
    WORD_ITEM,
    WORD_NOT_AFTER,
    WORD_NOT_BEFORE_OTHER,
)
from engine.tokenizer.unicode import CATEGORIES, HAN, N_CHARACTERS, WHITE_SPACE, category_runs

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_QUANTIFIER = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_FOLDED = {"s": "sSſ", "k": "kK\u212a"}  # the letters that have a third form

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """A set of characters: those of the categories and ranges and sets, or all others; and in all of `also`."""

    categories: tuple[str, ...] = ()
    ranges: Ranges = ()
    sets: tuple[CharacterClass, ...] = ()
    negated: bool = False
    also: tuple[CharacterClass, ...] = ()

    def bounds(self) -> set[int]:
        """The characters where a range begins or has just ended."""
        own = {bound for first, last in self.ranges for bound in (first, last + 1)}
        return own.union(*(other.bounds() for other in (*self.sets, *self.also)))

    def holds(self, starts: npt.NDArray[np.int64], categories: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """For runs that no bound cuts: whether their characters belong to the class."""
        wanted = np.array([category.startswith(self.categories) for category in CATEGORIES]) & bool(self.categories)
        found = wanted[categories]
        for first, last in self.ranges:
            found |= (starts >= first) & (starts <= last)
        for other in self.sets:
            found |= other.holds(starts, categories)
        if self.negated:
            found = ~found
        for other in self.also:
            found &= other.holds(starts, categories)
        return found


@dataclass(frozen=True, slots=True)
class Item:
    """One step of an alternative: `kind` is one of WORD_*, the rest depends on it."""

    kind: int
    characters: CharacterClass = field(default_factory=CharacterClass)
    at_least: int = 1
    at_most: int = 1
    group: tuple[tuple[Item, ...], ...] = ()


Alternatives = list[tuple[Item, ...]]


@dataclass(frozen=True, slots=True)
class WordTables:
    """What the kernel reads: `classes` (N_CHARACTERS,) uint32, a bit for each class that a character is in;
    `alternatives` and `items` (n, 4) int64, see engine/kernels/words.py; `expressions` (n, 2) int64, the first
    alternative of each expression and how many it has."""

    classes: npt.NDArray[np.uint32]
    alternatives: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    expressions: npt.NDArray[np.int64]


@cache
def compile_expressions(expressions: tuple[str, ...]) -> WordTables:
    """The tables for expressions that are applied one after another. Raises ValueError for what is not known."""
    parsed = [_Parser(expression).alternatives() for expression in expressions]
    return _Assembler().assemble(parsed)


class _Parser:
    """Reads one expression."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._position = 0
        self._folds = False

    def alternatives(self, end: str = "") -> Alternatives:
        """Alternatives up to `end`, which is taken, or to the end of the source."""
        found: Alternatives = []
        items: list[Item] = []
        while True:
            if self._position == len(self._source) or (end and self._source.startswith(end, self._position)):
                self._position += len(end)
                found += self._flat(items)
                return found
            if self._source[self._position] == "|":
                self._position += 1
                found += self._flat(items)
                items = []
                continue
            items.append(self._item())

    @staticmethod
    def _flat(items: list[Item]) -> Alternatives:
        """A group that is all of an alternative, or stands behind single characters, is several alternatives."""
        last = items[-1] if items else None
        if last is None or len(items) > MAX_ITEMS or any(item.kind == WORD_GROUP for item in items[:-1]):
            raise ValueError("an alternative is empty or too long, or a group stands inside of it")
        if last.kind == WORD_GROUP and last.at_least == 1:
            if any(item.kind != WORD_CLASS or item.at_least != item.at_most for item in items[:-1]):
                raise ValueError("a group that must match stands behind a repetition")
            return [(*items[:-1], *option) for option in last.group]
        return [tuple(items)]

    def _item(self) -> Item:
        for text, kind, characters in _ASSERTIONS:
            if self._take(text):
                return Item(kind, characters)
        if self._source.startswith("(?i:", self._position):
            self._position += 4
            self._folds = True
            group = tuple(self.alternatives(")"))
            self._folds = False
            optional = self._source.startswith("?", self._position)
            self._position += optional
            return Item(WORD_GROUP, at_least=1 - optional, group=group)
        characters = self._class() if self._take("[") else self._single()
        at_least, at_most = self._quantifier()
        return Item(WORD_CLASS, characters, at_least, at_most)

    def _quantifier(self) -> tuple[int, int]:
        for sign, bounds in (("?", (0, 1)), ("*", (0, MANY_CHARACTERS)), ("+", (1, MANY_CHARACTERS))):
            if self._take(sign):
                return bounds
        found = _QUANTIFIER.match(self._source, self._position)
        if found is None:
            return 1, 1
        self._position = found.end()
        least, most = found.groups()
        return int(least), int(least) if most is None else int(most or MANY_CHARACTERS)

    def _take(self, text: str) -> bool:
        taken = self._source.startswith(text, self._position)
        self._position += len(text) if taken else 0
        return taken

    def _single(self) -> CharacterClass:
        """A character or escape outside of brackets."""
        character = self._source[self._position]
        if character in "(){}[]^*+?":
            raise ValueError(f"{character!r} is not known here: {self._source[self._position :][:20]!r}")
        value = self._escape() if character == "\\" else self._character()
        if isinstance(value, CharacterClass):
            return value
        forms = _FOLDED.get(value.lower(), value.lower() + value.upper()) if self._folds else value
        return CharacterClass(ranges=tuple((ord(form), ord(form)) for form in forms))

    def _character(self) -> str:
        self._position += 1
        return self._source[self._position - 1]

    def _escape(self) -> str | CharacterClass:
        self._position += 1
        name = self._character()
        if name in "sS":
            return SPACE if name == "s" else NO_SPACE
        if name == "p":
            end = self._source.index("}", self._position)
            name = self._source[self._position + 1 : end]
            self._position = end + 1
            return _named(name)
        if name == "u":
            self._position += 4
            return chr(int(self._source[self._position - 4 : self._position], 16))
        if name.isalnum() and name not in _ESCAPES:
            raise ValueError(f"the escape \\{name} is not known")
        return _ESCAPES.get(name, name)

    def _class(self) -> CharacterClass:
        """What stands between brackets, the opening one taken already."""
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        sets: list[CharacterClass] = []
        also: list[CharacterClass] = []
        while not self._take("]"):
            if self._take("&&["):
                also.append(self._class())
                continue
            value = self._escape() if self._source[self._position] == "\\" else self._character()
            if isinstance(value, CharacterClass):
                sets.append(value)
                continue
            last: str | CharacterClass = value
            if self._source[self._position] == "-" and self._source[self._position + 1] != "]":
                self._position += 1
                last = self._escape() if self._source[self._position] == "\\" else self._character()
            if isinstance(last, CharacterClass) or last < value:
                raise ValueError("a range has no end")
            ranges.append((ord(value), ord(last)))
        if self._folds and any(chr(first).isalpha() for first, _ in ranges):
            ranges = [(ord(form), ord(form)) for first, last in ranges for form in _all_forms(first, last)]
        return CharacterClass((), tuple(ranges), tuple(sets), negated, tuple(also))


def _all_forms(first: int, last: int) -> str:
    letters = {chr(code).lower() for code in range(first, last + 1)}
    return "".join(_FOLDED.get(letter, letter + letter.upper()) for letter in sorted(letters))


def _named(name: str) -> CharacterClass:
    if name == "Han":
        return CharacterClass(ranges=_ranges(HAN))
    if not any(category.startswith(name) for category in CATEGORIES):
        raise ValueError(f"the property {name} is not known")
    return CharacterClass(categories=(name,))


def _ranges(text: str) -> Ranges:
    return tuple((ord(first), ord(last or first)) for first, last in re.findall(r"(.)(?:-(.))?", text, re.DOTALL))


SPACE = CharacterClass(ranges=_ranges(WHITE_SPACE))
NO_SPACE = CharacterClass(ranges=SPACE.ranges, negated=True)
_ASSERTIONS = (
    ("(?!\\S)", WORD_NOT_BEFORE_OTHER, SPACE),
    ("(?<!\\s)", WORD_NOT_AFTER, SPACE),
    ("$", WORD_NOT_BEFORE_OTHER, CharacterClass(ranges=((10, 10),))),  # also before a line break within
)


class _Assembler:
    """Numbers the classes and lays alternatives and items out as tables."""

    def __init__(self) -> None:
        self._bits: dict[CharacterClass, int] = {}
        self._alternatives: list[tuple[int, int, int, int]] = []
        self._items: list[tuple[int, int, int, int]] = []

    def assemble(self, parsed: Sequence[Alternatives]) -> WordTables:
        expressions = [self._add(alternatives) for alternatives in parsed]
        return WordTables(
            self._classes(),
            np.array(self._alternatives, np.int64).reshape(-1, WORD_ALTERNATIVE),
            np.array(self._items, np.int64).reshape(-1, WORD_ITEM),
            np.array(expressions, np.int64),
        )

    def _add(self, alternatives: Sequence[tuple[Item, ...]]) -> tuple[int, int]:
        """Lay out the alternatives as neighbours; those of their groups come before them."""
        rows = []
        for items in alternatives:
            laid_out = [self._row(item) for item in items]
            rows.append((len(self._items), len(items), self._first_characters(items), 0))
            self._items += laid_out
        first = len(self._alternatives)
        self._alternatives += rows
        return first, len(rows)

    def _row(self, item: Item) -> tuple[int, int, int, int]:
        if item.kind == WORD_GROUP:
            return (WORD_GROUP, *self._add(item.group), 0)
        return (item.kind, self._bit(item.characters), item.at_least, item.at_most)

    def _first_characters(self, items: Sequence[Item]) -> int:
        """The classes that an alternative's first character can be in."""
        mask = 0
        for item in items:
            if item.kind == WORD_CLASS:
                mask |= self._bit(item.characters)
                if item.at_least > 0:
                    break
        return mask

    def _bit(self, characters: CharacterClass) -> int:
        if len(self._bits) == 32 and characters not in self._bits:
            raise ValueError("the expressions use more than 32 classes")
        return 1 << self._bits.setdefault(characters, len(self._bits))

    def _classes(self) -> npt.NDArray[np.uint32]:
        run_starts, run_categories = category_runs()
        bounds = {bound for characters in self._bits for bound in characters.bounds() if bound < N_CHARACTERS}
        starts = np.union1d(run_starts, np.array(sorted(bounds), np.int64))
        categories = run_categories[np.searchsorted(run_starts, starts, "right") - 1]
        masks = np.zeros(len(starts), np.uint32)
        for characters, bit in self._bits.items():
            masks |= characters.holds(starts, categories).astype(np.uint32) << np.uint32(bit)
        return np.repeat(masks, np.diff(starts, append=N_CHARACTERS))
