"""However a template makes much out of little, it fails before the memory is taken."""

from __future__ import annotations

import time
import tracemalloc

import pytest
import trio
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from msgspec.structs import replace

from sortie.model import TemplateError
from sortie.workflow import render_budget
from sortie.workflow.compiler import check_prompt
from sortie.workflow.prompts import Prompt
from sortie.workflow.renderer import render
from sortie.workflow.variables import variables_of
from tests.workflow.sample import ISSUE, context

ISSUE_TEXT = "d" * (64 << 10)
GIVEN = context(replace(ISSUE, description=ISSUE_TEXT))

NESTED = (
    "{% set ns = namespace(x=['x']) %}"
    "{% for i in range(30) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
)
NESTED_DICTS = (
    "{% set ns = namespace(x={1: 1}) %}"
    "{% for i in range(30) %}{% set ns.x = {1: ns.x, 2: ns.x} %}{% endfor %}"
)
MANY = "{% for i in range(4000) %}{{ issue.description }}{% endfor %}"


def kept(value: str, before: str = "") -> str:
    """Return a template that keeps a value for each of many turns of a loop."""
    return (
        "{% set ns = namespace(x=none) %}" + before + "{% for i in range(99999) %}"
        "{% set ns.x = [ns.x, " + value + "] %}{% endfor %}"
    )


BIG_NUMBER = "{% set b = ('f' * 400000)|int(0, 16) %}"

LARGE = {
    # Filters with a width, a count or a text that is repeated
    "center": "{{ 'x'|center(200000000)|length }}",
    "indent": "{{ ('\n' * 4000)|indent(50000)|length }}",
    "replace": "{{ issue.description|replace('d', issue.description)|length }}",
    "wordwrap": "{{ issue.description|wordwrap(1, wrapstring=issue.description)|length }}",
    "batch": "{{ [1]|batch(20000000, 'x')|list|length }}",
    "slice": "{{ [1]|slice(200000000)|list|length }}",
    "round": "{{ 5|round(-500000000) }}",
    "tojson": "{{ [1]|tojson(200000000)|length }}",
    "pprint": "{{ {issue.description: range(4000)|list}|pprint|length }}",
    "format": "{{ '%200000000d'|format(1)|length }}",
    "format by name": "{{ ('%(a)s' * 4000)|format(a=issue.description)|length }}",
    "join": "{{ ([issue.description] * 4000)|join|length }}",
    "join by a text": "{{ range(4000)|join(issue.description)|length }}",
    "sum": "{{ ([[1] * 400000] * 100)|sum(start=[])|length }}",
    "sort": "{{ ([issue.description] * 4000)|sort|length }}",
    "groupby": "{{ ([issue] * 4000)|groupby('description')|length }}",
    "dictsort": ("{{ dict.fromkeys(range(4000), issue.description)|dictsort(by='value')|length }}"),
    "urlencode": "{{ ([('a', issue.description)] * 4000)|urlencode|length }}",
    "filters of a map": "{{ (range(4000)|map('string')|map('center', 99999))|list|length }}",
    "lists of a map": "{{ ([range(99999)] * 999)|map('list')|list|length }}",
    # Methods
    "method center": "{{ 'x'.center(200000000)|length }}",
    "method zfill": "{{ 'x'.zfill(200000000)|length }}",
    "method expandtabs": "{{ '\t'.expandtabs(200000000)|length }}",
    "method join": "{{ issue.description.join(['x'] * 4000)|length }}",
    "method replace": "{{ issue.description.replace('d', issue.description)|length }}",
    "method by another name": "{% set f = 'x'.center %}{{ f(200000000)|length }}",
    "method of escaped text": "{{ ('x'|e).join([issue.description] * 4000)|length }}",
    "method format": "{{ '{:200000000}'.format(1)|length }}",
    "method format, nested": "{{ '{:{w}}'.format(1, w=200000000)|length }}",
    "method format, a list": (
        "{% set a = [issue.description] * 4000 %}{{ '{0!r:.3}'.format(a)|length }}"
    ),
    "method format of escaped text": "{{ ('{:200000000}'|e).format(1)|length }}",
    # Operators
    "times": "{{ ('x' * 200000000)|length }}",
    "times, of escaped text": "{{ (200000000 * ('x'|e))|length }}",
    "percent": "{{ ('%200000000d' % 1)|length }}",
    "percent with a star": "{{ ('%*d' % (200000000, 1))|length }}",
    "percent with names": "{{ ('%(a)s' * 4000 % {'a': issue.description})|length }}",
    "percent with brackets": "{{ ('%(a(b)c)200000000d' % {'a(b)c': 1})|length }}",
    "plus": (
        "{% set ns = namespace(x='ab') %}{% for i in range(28) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}"
    ),
    "tilde": (
        "{% set ns = namespace(x='ab') %}{% for i in range(28) %}{% set ns.x = ns.x ~ ns.x %}"
        "{% endfor %}"
    ),
    "tilde of escaped text": (
        "{% autoescape true %}{{ ([issue.description] * 4000) ~ issue.title }}{% endautoescape %}"
    ),
    # Lists that hold one list twice, and become text
    "nested": NESTED + "{{ ns.x }}",
    "nested dicts": NESTED_DICTS + "{{ ns.x }}",
    "nested namespace": NESTED + "{{ ns }}",
    "nested, as JSON": NESTED + "{{ ns.x|tojson|length }}",
    "nested, pretty": NESTED + "{{ ns.x|pprint|length }}",
    "nested, joined": NESTED + "{{ ns.x|join|length }}",
    # Blocks that are kept as text
    "set block": "{% set x %}" + MANY + "{% endset %}",
    "filter block": "{% filter length %}" + MANY + "{% endfilter %}",
    "macro": "{% macro m() %}" + MANY + "{% endmacro %}{{ m()|length }}",
    "call block": (
        "{% macro m() %}{{ caller()|length }}{% endmacro %}{% call m() %}" + MANY + "{% endcall %}"
    ),
    "recursive loop": (
        "{% set x %}{% for n in [13] recursive %}{% if n %}{{ loop([n - 1, n - 1]) }}"
        "{% else %}{{ issue.description }}{% endif %}{% endfor %}{% endset %}"
    ),
    # Many values, none of them large
    "kept lists": kept("range(9999)|list"),
    "kept parts": kept("issue.description[i:]"),
    "kept texts": kept("issue.description|upper"),
    "kept literals": kept("[" + "0," * 400 + "]"),
    "kept arguments": kept("cycler(*r)", "{% set r = range(9999)|list %}"),
    "kept numbers": kept("-b", BIG_NUMBER),
    "kept keys": kept("dict.fromkeys(range(9999))"),
}


@pytest.mark.parametrize("name", LARGE)
async def test_much_cannot_be_made_out_of_little(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rendering fails, says why, and at no time took more memory than it may."""
    monkeypatch.setattr(render_budget, "MEMORY_LIMIT", 4 << 20)
    tracemalloc.start()
    try:
        with trio.fail_after(60), pytest.raises(TemplateError, match="makes too much text"):
            await render(Prompt(source="x" + LARGE[name]), GIVEN, seconds=30)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 48 << 20


REFUSED = {
    "{{ 'x'.encode() * 200000000 }}": "encode",
    "{{ (1).to_bytes(200000000, 'big') }}": "to_bytes",
    "{{ issue.description.translate({100: issue.description}) }}": "translate",
    "{{ '{x:200000000}'.format_map({'x': 1}) }}": "format_map",
    "{{ 'x'['encode']() }}": "encode",
}


@pytest.mark.parametrize("source", REFUSED)
async def test_methods_that_no_prompt_needs_are_left_out(source: str) -> None:
    """Bytes, and what cannot be asked how much it makes."""
    with trio.fail_after(60), pytest.raises(TemplateError, match=f"'{REFUSED[source]}' of"):
        await render(Prompt(source=source), GIVEN)


def test_checking_a_prompt_makes_nothing() -> None:
    """A template is compiled without a value of it being made."""
    begin = time.monotonic()
    tracemalloc.start()
    try:
        found = check_prompt(Prompt(source="".join(f"{{{{ 'x'|center({2 << 21}) }}}}" * 50)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (found, peak < 4 << 20) == ((), True)
    assert time.monotonic() - begin < 30


AS_IN_JINJA = [
    "{{ issue.labels|join(', ') }} {{ [issue, issue]|join('+', attribute='title') }}",
    "{{ range(3)|map('string')|join }} {{ 'ab'|join('-') }} {{ [1, none]|join }}",
    "{{ [1, 2.5]|sum }} {{ [[1], [2]]|sum(start=[]) }} {{ [{'a': 2}]|sum(attribute='a') }}",
    "{{ {'b': [1, {'a': 'x' * 99}], 'a': 'y' * 99}|pprint }} {{ 'x'|pprint }}",
    "{{ {'b': [1, '<'], 'a': none}|tojson }} {{ [1, [2]]|tojson(2) }} {{ 'ä'|tojson }}",
    "{{ '%s %(x)s' if false else '' }}{{ '%(a)s-%(b)5.1f%%' % {'a': 1, 'b': 2} }}",
    "{{ '%-5s|%*d|%r' % ('a', 4, 7, 'x') }} {{ '%s' % 1 }} {{ 7 % 4 }} {{ '%s'|format('a') }}",
    "{{ '{0}{1:>4}{x!r}'.format('a', 3, x='y') }} {{ '{:{w}}'.format(1, w=3) }}",
    "{{ ('<{}>'|e).format('<') }} {{ ('<'|e) * 2 }} {{ ('%s'|e) % '<' }}",
    "{% autoescape true %}{{ issue.title ~ '<' ~ '>'|safe }}{{ '<b>'|e }}{% endautoescape %}",
    "{{ ['b', 'A']|sort }} {{ ['b', 'A']|sort(true, true) }} {{ [issue]|sort(attribute='title') }}",
    "{% for g, xs in [{'a': 1}, {'a': 2}]|groupby('a') %}{{ g }}{{ xs }}{% endfor %}",
    "{{ {'b': 1, 'A': 'x'}|dictsort }} {{ issue.title.center(20) }} {{ 'a'|indent('> ', true) }}",
    "{{ 'a b c'|wordwrap(3) }} {{ 'a b c'|wordwrap(3, wrapstring='|') }}",
    "{{ 'abab'|replace('a', 'x', 1) }} ",
    "{{ 'ab'.replace('a', '') }} {{ 'abab'.replace('a', 'x', 1) }}",
    "{{ range(5)|batch(2, 'x')|list }} {{ range(5)|slice(2)|list }} {{ 'abc'|reverse }}",
    "{{ [1, 1, 2]|unique|list }} {{ [3, 1]|map('string')|list }} {{ [0, 1]|select|list }}",
    "{{ 2.567|round(1) }} {{ 42|round(-1) }} {{ 2.5|round(method='floor') }} {{ -(3) }} {{ +3 }}",
    "{{ issue.title[2:4] }} {{ [1, 2, 3][::-1] }} {{ (1, 2) }} {{ {1: 2} }} {{ (1,)[0] }}",
    "{{ ' '.join(['a', 'b']) }} {{ 'a,b'.split(',') }} {{ 'x'.ljust(3) }}|",
    "{{ {'a': [1, 2]}.items()|list }} {{ namespace(a=1).a }} {{ 'a&b'|urlencode }} "
    "{{ {'a': 1}|urlencode }} {{ [('a', 1)]|urlencode }}",
    "{% set x %}{% for i in range(3) %}{{ i }}{% endfor %}{% endset %}{{ x ~ 1 ~ none ~ [1] }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}"
    "{{ m(1, 3, 4, c=5) }}",
    "{% for a, b in [(1, 2)] %}{{ a }}{{ b }}{{ loop.cycle('x', 'y') }}{% endfor %}",
    "{% for x in [1, 2, 3]|map('string') %}{{ loop.length }}{{ loop.last }}{% endfor %}",
]


@pytest.mark.parametrize("source", AS_IN_JINJA)
async def test_what_is_bounded_gives_what_jinja_gives(source: str) -> None:
    """Filters, operators and methods are Jinja's own where little is made."""
    jinja = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    given = context(replace(ISSUE, labels=("a", "b")))

    text = await render(Prompt(source=source), given)

    assert text == jinja.from_string(source).render(variables_of(given)).strip()


async def test_a_large_issue_is_taken_as_it_is() -> None:
    """An issue's text may be larger than a prompt as long as the prompt shows a part of it."""
    given = context(replace(ISSUE, description="word " * (1 << 20)))
    source = (
        "{{ issue.description|truncate(20) }}{{ issue.description[:3] }}"
        "{{ issue.description|length }}{{ issue.description.split(' ', 1)[0]|upper }}"
    )

    assert await render(Prompt(source=source), given) == "word word word...wor5242880WORD"
