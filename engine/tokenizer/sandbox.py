"""The jinja2 environment that chat templates, which come with any file, are run in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn

from jinja2 import Environment, nodes, pass_environment
from jinja2.exceptions import TemplateRuntimeError
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace

from engine.tokenizer import limits

_FILTERS = (
    "abs attr capitalize count d default dictsort e escape first float groupby int items last length list lower map "
    "max min reject rejectattr reverse round safe select selectattr sort striptags title trim truncate unique upper "
    "urlencode wordcount"
)


class RefusedByTemplate(TemplateRuntimeError):
    """The template itself called `raise_exception`."""


class GivenList(list[Any]):
    """A list of the caller's, which a template may read but not change."""


def given(value: Any) -> Any:
    """A copy of the caller's value in which every list is a GivenList and everything else is a plain JSON value."""
    if isinstance(value, Mapping):
        return {str(key): given(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return GivenList(given(item) for item in value)
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return f"<{type(value).__name__}>"


class GenerationTag(Extension):
    """`{% generation %}` marks an assistant's words for training; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 (the base class declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The block's content, as it stands."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """What chat templates are written for, within limits.

    jinja2's sandbox keeps a template from reaching out of it. On top of that no operation, call or filter
    here makes a huge value (`limits`), and filters and globals that no chat template needs are left out.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(limits.joined)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationTag], finalize=limits.checked
        )
        self.filters = {name: self.filters[name] for name in _FILTERS.split()}
        self.filters |= {
            "format": _format,
            "from_json": _from_json,
            "indent": _indent,
            "join": _join,
            "joined": limits.joined,
            "checked": limits.checked,
            "replace": _replace,
            "string": limits.text_of,
            "sum": _sum,
            "tojson": _tojson,
        }
        self.globals = {
            "cycler": Cycler,
            "dict": dict,
            "joiner": Joiner,
            "namespace": Namespace,
            "raise_exception": _raise_exception,
            "range": _range,
            "strftime_now": _strftime_now,
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Parse, then send what `~` joins and what literals nest through the guards."""
        template = super()._parse(source, name, filename)
        for concat in template.find_all(nodes.Concat):
            parts = nodes.List(concat.nodes, lineno=concat.lineno)
            concat.nodes = [_filtered(parts, "joined")]
        for parent in list(template.find_all(nodes.Node)):
            for field, value in list(parent.iter_fields()):
                if isinstance(value, list):
                    setattr(parent, field, [_guarded(item) for item in value])
                else:
                    setattr(parent, field, _guarded(value))
        return template

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """As the sandbox says; besides, a template may append to lists of its own and take from them."""
        return super().is_safe_attribute(obj, attr, value) or (attr in {"append", "pop"} and type(obj) is list)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operation, unless its result would be huge."""
        limits.check_binary(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """The call, unless its result would be huge."""
        method = getattr(__obj, "__wrapped__", __obj)
        owner = getattr(method, "__self__", None)
        if isinstance(owner, (str, bytes, int, float)):
            name = getattr(method, "__name__", "")
            if name == "join" and isinstance(owner, str) and len(args) == 1:
                return limits.joined(args[0], owner)
            limits.check_method(owner, name, args, kwargs)
        if isinstance(owner, list) and args:
            limits.checked([owner, *args])
        nested = [value for value in (*args, *kwargs.values()) if isinstance(value, (list, tuple, dict))]
        if len(nested) > 1:
            limits.checked(nested)
        return super().call(__context, __obj, *args, **kwargs)


def _guarded(value: Any) -> Any:
    """A literal that nests other values is checked where it is made: nothing else can make nesting explode."""
    if isinstance(value, (nodes.List, nodes.Dict)) or (isinstance(value, nodes.Tuple) and value.ctx == "load"):
        if all(isinstance(item, nodes.Const) for item in value.items):
            return value
        return _filtered(value, "checked")
    return value


def _filtered(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _format(form: Any, *args: Any, **kwargs: Any) -> str:
    values = kwargs or args
    limits.check_format(limits.text_of(form), (*args, *kwargs.values()))
    return limits.text_of(form) % values


def _indent(text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if isinstance(width, int):
        if width > limits.MAX_NUMBER:
            raise limits.LimitError(f"it indents by {width:,}")
        width = " " * width
    text = limits.text_of(text)
    limits.check_characters(len(text) + (text.count("\n") + 1) * len(width))
    head, *rest = text.split("\n")
    lines = [(width + line) if line or blank else line for line in rest]
    return "\n".join([(width if first else "") + head, *lines])


@pass_environment
def _join(environment: Environment, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return limits.joined(value, limits.text_of(d))


def _replace(text: Any, old: Any, new: Any, count: int = -1) -> str:
    text, old, new = limits.text_of(text), limits.text_of(old), limits.text_of(new)
    limits.check_replace(text, old, new)
    result: str = text.replace(old, new, -1 if count is None else count)
    return result


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as a model was trained on: `<` and accents stay what they are. A filter's result counts as a list."""
    if isinstance(value, Iterator):
        value = list(islice(value, limits.MAX_ITEMS))
    if isinstance(indent, int) and indent > 64:
        raise limits.LimitError(f"it indents JSON by {indent:,}")
    return json.dumps(
        limits.checked(value), ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _from_json(text: Any) -> Any:
    return json.loads(limits.text_of(text))


@pass_environment
def _sum(environment: Environment, values: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    for value in values:
        limits.check_binary("+", start, value)
        start = start + value
    return start


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > limits.MAX_NUMBER:
        raise limits.LimitError(f"it counts to {len(numbers):,}; the limit is {limits.MAX_NUMBER:,}")
    return numbers


def _raise_exception(message: Any) -> NoReturn:
    raise RefusedByTemplate(limits.text_of(message)[:500])


def _strftime_now(form: str) -> str:
    limits.check_format(form, ())
    return datetime.now().strftime(form)
