"""Turns a block of Markdown into paragraphs of styled runs, before any document is touched."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from markdown_it.token import Token

from ui.chat.text_styles import ParagraphStyle, TextStyle

_HEADING_SIZES = {1: 21, 2: 18, 3: 16}


@dataclass(slots=True)
class Run:
    """Characters of one look."""

    text: str
    style: TextStyle


@dataclass(slots=True)
class Paragraph:
    """One block of text."""

    style: ParagraphStyle
    runs: list[Run] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: its runs, and "left", "center" or "right"."""

    runs: list[Run]
    align: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first one is the head."""

    rows: list[list[Cell]]


Plan = list[Paragraph | Table]


@dataclass
class _ListLevel:
    next_number: int | None  # None: bullets
    item_begins: bool = False

    def take_marker(self) -> str:
        self.item_begins = False
        if self.next_number is None:
            return "•"
        self.next_number += 1
        return f"{self.next_number - 1}."


def plan_of(tokens: list[Token], text_size: float = 15, color: str = "text") -> Plan:
    """The paragraphs and tables of one top-level block; `color` is a token of the theme."""
    return _Planner(text_size, color).plan(tokens)


class _Planner:
    def __init__(self, text_size: float, color: str) -> None:
        self._text_size, self._color = text_size, color
        self._plan: Plan = []
        self._lists: list[_ListLevel] = []
        self._quotes = self._strong = self._emphasis = self._struck = self._heading = 0
        self._link = ""

    def plan(self, tokens: list[Token]) -> Plan:
        index = 0
        while index < len(tokens):
            if tokens[index].type == "table_open":
                end = next(i for i in range(index, len(tokens)) if tokens[i].type == "table_close")
                self._table(tokens[index : end + 1])
                index = end
            else:
                self._token(tokens[index])
            index += 1
        return self._plan

    def _token(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._heading = int(token.tag[1])
                self._begin(before=8, after=8)
            case "heading_close":
                self._heading = 0
            case "paragraph_open":
                self._begin(after=4 if token.hidden else 10)
            case "inline":
                self._add(self._inline(token.children or []))
            case "bullet_list_open" | "ordered_list_open":
                is_ordered = token.type == "ordered_list_open"
                self._lists.append(_ListLevel(int(token.attrGet("start") or 1) if is_ordered else None))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                if not self._lists:
                    self._space_after(10)
            case "list_item_open":
                self._lists[-1].item_begins = True
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
            case "hr":
                self._begin(before=6, after=12, is_rule=True)
            case "fence" | "code_block":
                self._nested_code(token.content)
            case "html_block":
                self._begin(after=10)
                self._add([Run(token.content.rstrip("\n"), self._style())])
            case _:
                pass

    def _begin(self, *, before: int = 0, after: int = 10, is_rule: bool = False, is_code: bool = False) -> None:
        marker = self._lists[-1].take_marker() if self._lists and self._lists[-1].item_begins else ""
        style = ParagraphStyle(
            self._style(),
            before,
            after,
            self._quotes,
            len(self._lists),
            is_rule=is_rule,
            is_code=is_code,
            marker=marker,
        )
        self._plan.append(Paragraph(style))

    def _add(self, runs: list[Run]) -> None:
        if not self._plan or isinstance(self._plan[-1], Table):
            self._begin()
        paragraph = self._plan[-1]
        assert isinstance(paragraph, Paragraph)
        paragraph.runs += runs

    def _space_after(self, after: int) -> None:
        if self._plan and isinstance(last := self._plan[-1], Paragraph):
            last.style = replace(last.style, after=after)

    def _nested_code(self, content: str) -> None:
        lines = content.rstrip("\n").split("\n")
        for number, line in enumerate(lines):
            self._begin(after=10 if number == len(lines) - 1 else 0, is_code=True)
            self._add([Run(line, self._style(is_code=True))])

    def _style(self, *, is_code: bool = False, is_inline: bool = False) -> TextStyle:
        return TextStyle(
            _HEADING_SIZES.get(self._heading, self._text_size),
            "text_muted" if self._quotes else self._color,
            self._strong > 0 or self._heading > 0,
            self._heading > 0,
            self._emphasis > 0,
            self._struck > 0,
            is_code,
            is_inline,
            self._link,
        )

    def _inline(self, children: list[Token]) -> list[Run]:
        runs: list[Run] = []
        for token in children:
            match token.type:
                case "text" | "html_inline":
                    runs.append(Run(token.content, self._style()))
                case "code_inline":
                    runs.append(Run(f"\u2009{token.content}\u2009", self._style(is_code=True, is_inline=True)))
                case "softbreak" | "hardbreak":
                    runs.append(Run("\u2028", self._style()))
                case "strong_open":
                    self._strong += 1
                case "strong_close":
                    self._strong -= 1
                case "em_open":
                    self._emphasis += 1
                case "em_close":
                    self._emphasis -= 1
                case "s_open":
                    self._struck += 1
                case "s_close":
                    self._struck -= 1
                case "link_open":
                    self._link = str(token.attrGet("href") or "")
                case "link_close":
                    self._link = ""
                case "image":  # nothing is fetched from the net: a picture is shown as a link to it
                    self._link = str(token.attrGet("src") or "")
                    runs.append(Run(token.content or self._link, self._style()))
                    self._link = ""
                case _:
                    pass
        return joined(runs)

    def _table(self, tokens: list[Token]) -> None:
        rows: list[list[Cell]] = []
        align = "left"
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type in {"th_open", "td_open"}:
                align = str(token.attrGet("style") or "").removeprefix("text-align:")
            elif token.type == "inline":
                self._strong = int(len(rows) == 1)
                rows[-1].append(Cell(self._inline(token.children or []), align))
                self._strong = 0
        if rows and rows[0]:
            self._plan.append(Table(rows))


def joined(runs: list[Run]) -> list[Run]:
    """Neighbours of one look as one run."""
    found: list[Run] = []
    for run in runs:
        if found and found[-1].style == run.style:
            found[-1] = Run(found[-1].text + run.text, run.style)
        elif run.text:
            found.append(run)
    return found
