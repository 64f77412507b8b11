"""No template can act, hang, or use up memory."""

from __future__ import annotations

import resource
import sys

import pytest

from engine.errors import TemplateError
from engine.tokenizer import ChatTemplate, Tokenizer, limits
from tests.engine.tokenizer.reference_data import compact_models

SIXTY_TIMES = (
    "{{% set ns = namespace(x=['a'], t='aaaaaaaa', n=7) %}}{{% for i in range(60) %}}{}{{% endfor %}}{{{{ ns.x }}}}"
)


def render(source: str) -> str:
    metadata = {**compact_models()["llama"]["metadata"], "tokenizer.chat_template": source}
    template = ChatTemplate.from_metadata(metadata, Tokenizer.from_metadata(metadata))
    return template.render([{"role": "user", "content": "Hi"}])


REFUSED_AT_ONCE = [
    "{{ 'a' * 1000000000 }}",
    "{{ 1000000000 * [1] }}",
    "{{ 9999999 ** 999999 }}",
    "{% for i in range(1000000000) %}{% endfor %}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ '{:{}}'.format(1, 1000000000) }}",
    "{{ 'a'.ljust(1000000000) }}",
    "{{ 'a'.center(width=1000000000) }}",
    "{{ '\t'.expandtabs(1000000000) }}",
    "{{ 'a' | indent(1000000000, true) }}",
    "{{ (5).to_bytes(1000000000, 'big') }}",
    "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000) | join('b' * 1000000) }}",
    "{{ ('b' * 1000000).join('a' * 1000000) }}",
    "{{ 'a'.translate({97: 'b' * 1000000}) }}",
    "{{ {'a': 1} | tojson(indent=1000000000) }}",
    "{{ lipsum(100000000) }}",
    "{{ strftime_now('%1000000000d') }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ " + "(" * 100_000 + " }}",
    "x" * 1_000_001,
    SIXTY_TIMES.format("{% set ns.t = ns.t ~ ns.t %}"),
    SIXTY_TIMES.format("{% set ns.t = ns.t + ns.t %}"),
    SIXTY_TIMES.format("{% set ns.t %}{{ ns.t }}{{ ns.t }}{% endset %}"),
    SIXTY_TIMES.format("{% set ns.x = ns.x + ns.x %}"),
    SIXTY_TIMES.format("{% set ns.n = ns.n * ns.n %}"),
    SIXTY_TIMES.format("{% set ns.x = namespace(a=ns.x, b=ns.x) %}"),
    SIXTY_TIMES.format("{% set _ = ns.x.append(ns.x) %}"),
    "{{ [['a' * 1000000]] * 100 | sum(start=[]) }}{{ ['a' * 1000000] * 100 | sum(start='') }}",
    "{{ (['a' * 1000000] * 100) | sum(start='') }}",
    "{{ ('[' * 100000) | from_json }}",
]
REFUSED_IN_TIME = [
    "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% for i in range(10000) %}{{ range(10000) | map('string') | sort | join }}{% endfor %}",
    "{% set x = (['a' * 9000000] * 10000) | map('upper') | list %}",
    SIXTY_TIMES.format("{% set ns.x = [ns.x, ns.x] %}"),
    SIXTY_TIMES.format("{% set y = [] %}{% set _ = y.append(ns.x) %}{% set _ = y.append(ns.x) %}{% set ns.x = y %}"),
    SIXTY_TIMES.format("{% set ns.x = {'a': ns.x, 'b': ns.x} %}"),
    SIXTY_TIMES.format("{% set ns.x = dict(a=ns.x, b=ns.x) %}"),
    SIXTY_TIMES.format("{% set ns.x = [ns.x] + [ns.x] %}"),
]


@pytest.mark.parametrize("source", REFUSED_AT_ONCE, ids=lambda source: source[:60])
def test_huge_values_are_refused_before_they_are_made(source: str) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TemplateError) as refusal:
        render(source)
    assert "it ran for more than" not in str(refusal.value)  # it is never begun
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 200_000  # kilobytes


@pytest.mark.parametrize("source", REFUSED_IN_TIME, ids=lambda source: source[:60])
def test_endless_work_is_stopped(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.25)
    with pytest.raises(TemplateError, match="was stopped"):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ strftime_now.__globals__.sys }}",
        "{{ messages | map(attribute='__class__') | first | attr('x') | upper() }}{{ messages[0].__class__() }}",
        "{% import 'os' as os %}",
        "{% include '/etc/passwd' %}",
        "{{ namespace.__init__.__globals__ }}",
    ],
)
def test_nothing_outside_the_conversation_can_be_reached(source: str) -> None:
    with pytest.raises(TemplateError):
        render(source)


def test_attributes_that_lead_out_are_empty() -> None:
    assert render("{{ '{0.__class__}'.format(1) }}{{ self._TemplateReference__context }}") == ""
    assert render("{{ raise_exception.__globals__ }}{{ namespace.__init__ }}") == ""


def test_the_trace_hook_is_given_back() -> None:
    def outer(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(outer)
    try:
        render("x")
        with pytest.raises(TemplateError):
            render("{{ x.y }}")
        assert sys.gettrace() is outer
    finally:
        sys.settrace(before)
