"""Prompts are rendered as Jinja does it, and never run away."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sortie.model import Blocker, Comment, Issue, IssueId, TemplateError
from sortie.resources import alarm
from sortie.resources.alarm import Alarm
from sortie.worker.outcome import StatusWord
from sortie.workflow import render_budget, renderer
from sortie.workflow.prompts import (
    CONTINUATION_PROMPT,
    Prompt,
    PromptContext,
    with_status_instructions,
)
from sortie.workflow.renderer import render
from sortie.workflow.variables import variables_of
from tests.resources.scarcity import ThreadLimit
from tests.workflow.sample import ISSUE, context

FULL = Issue(
    id=IssueId("42"),
    identifier="DEMO-42",
    title="Mend {{ 7*7 }}",
    state="Todo",
    description="{% raw %}<b>& {{ issue }}",
    priority=2,
    url="https://x/42",
    labels=("a", "b"),
    assignee="ann",
    issue_type="bug",
    branch_name="fix/42",
    parent="DEMO-1",
    comments=(
        Comment(author="bob", body="why?", created_at=datetime(2024, 1, 2, 3, 4, 5, 6, UTC)),
        Comment(author="eve", body="so"),
    ),
    blocked_by=(Blocker(identifier="DEMO-7", id=IssueId("7"), state="Done"),),
    created_at=datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
)


async def rendered(source: str, given: PromptContext | None = None, seconds: float = 5.0) -> str:
    """Render a prompt that begins on line 10."""
    with trio.fail_after(60):
        return await render(
            Prompt(source=source, line=10, path="W"), given or context(), seconds=seconds
        )


async def failure(source: str, given: PromptContext | None = None, seconds: float = 5.0) -> str:
    """Return why a prompt cannot be rendered."""
    with pytest.raises(TemplateError) as caught:
        await rendered(source, given, seconds)
    return str(caught.value)


async def test_every_variable_has_its_value() -> None:
    """All that the contract names is there; times are RFC 3339 in UTC, unknown is none."""
    source = (
        "{{ issue.id }} {{ issue.identifier }} {{ issue.title }} {{ issue.description }} "
        "{{ issue.state }} {{ issue.priority }} {{ issue.url }} {{ issue.labels | join('+') }} "
        "{{ issue.assignee }} {{ issue.issue_type }} {{ issue.branch_name }} {{ issue.parent }} "
        "{% for c in issue.comments %}{{ c.author }}:{{ c.body }}:{{ c.created_at }} {% endfor %}"
        "{% for b in issue.blocked_by %}{{ b.identifier }}:{{ b.id }}:{{ b.state }} {% endfor %}"
        "{{ issue.created_at }} {{ issue.updated_at }} "
        "{{ attempt }} {{ run.turn_number }} {{ run.max_turns }} {{ run.is_continuation }} "
        "{{ workspace.path }} {{ workspace.host }}"
    )

    text = await rendered(source, context(FULL, turn=2, attempt=4))

    assert text == (
        "42 DEMO-42 Mend {{ 7*7 }} {% raw %}<b>& {{ issue }} Todo 2 https://x/42 a+b ann bug "
        "fix/42 DEMO-1 bob:why?:2024-01-02T03:04:05Z eve:so:None DEMO-7:7:Done "
        "2024-01-01T00:00:00Z None 4 2 3 True /w/DEMO-1 local"
    )


FAILURES = {
    "a\n\n{{ 1 / 0 }}": "W:12: prompt: ZeroDivisionError: division by zero",
    "{{ issue.titel }}": 'W:10: prompt: issue has no "titel"; did you mean "title"?',
    "{{ isue }}": 'W:10: prompt: there is no "isue"; did you mean "issue"?',
    "\n{{ issue.labels[5] }}": "W:11: prompt: list object has no element 5",
    "{% for c in issue.comments %}\n{{ c.autor }}{% endfor %}": (
        'W:11: prompt: a comment has no "autor"; did you mean "author"?'
    ),
    "{{ issue.title.nope }}": "W:10: prompt: 'str object' has no attribute 'nope'",
    "{{ none + 1 }}": (
        "W:10: prompt: TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'"
    ),
    "\n{{ ": "W:11: prompt: unexpected 'end of template'",
    "{{ range(10 ** 9) }}": (
        "W:10: prompt: OverflowError: Range too big. The sandbox blocks ranges larger than "
        "MAX_RANGE (100000)."
    ),
    "{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}": ("W:10: prompt: calls itself too deeply"),
    "{% if false %}x{% endif %}": "W:10: prompt: came out empty for the first turn",
}


@pytest.mark.parametrize("source", FAILURES)
async def test_a_failing_prompt_tells_the_line_of_the_file(source: str) -> None:
    """The error names the file, the line in it, and what is wrong."""
    assert await failure(source, context(FULL)) == FAILURES[source]


INTERNALS = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ issue.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ self.__dict__ }}",
    "{{ ''|attr('__class__') }}",
    "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
    "{{ issue.labels.append('x') }}",
    "{{ issue.update({'title': 'x'}) }}",
    "{{ lipsum.__globals__ }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ (5).__class__ }}",
    "{% include '/etc/passwd' %}",
]


@pytest.mark.parametrize("source", INTERNALS)
async def test_a_prompt_cannot_reach_for_internals(source: str) -> None:
    """Python's insides, and changes of what it is given, are refused."""
    assert (await failure(source)).startswith("W:10: prompt: ")


LARGE = "makes too much text; a prompt may have 4 MiB"
TOO_MUCH = {
    "{{ issue.description * 5 }}": LARGE,
    "{{ 10 ** (10 ** 10) }}": "a power is too large for a prompt",
    "{{ 2 ** 5000 * 2 ** 5000 * 2 ** 5000 }}": "a product is too large for a prompt",
    "{{ issue.description }}" * 5: LARGE,
    "{% for i in range(99999) %}" + "x" * 1000 + "{% endfor %}": LARGE,
}


@pytest.mark.parametrize("source", TOO_MUCH)
async def test_a_slip_cannot_make_much_out_of_little(source: str) -> None:
    """A number or a loop that is larger than it was meant fails its prompt, and promptly."""
    begin = time.monotonic()

    message = await failure(source, context(replace(ISSUE, description="d" * (1 << 20))))

    assert message == f"W:10: prompt: {TOO_MUCH[source]}"
    assert time.monotonic() - begin < 30


ENDLESS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "filtered loops": "{% for a in range(99999) %}{% for b in range(999) if b < 0 %}{% endfor %}"
    "{% endfor %}",
    "kept loops": "{% set x %}{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% if b < 0 %}x{% endif %}{% endfor %}{% endfor %}{% endset %}",
    "text": "{% set d = issue.description %}"
    "{% for a in d %}{% for b in d %}{% endfor %}{% endfor %}",
    "calls": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(90) }}",
    "recursion": "{% for n in [30] recursive %}{% if n %}{{ loop([n - 1, n - 1]) }}{% endif %}"
    "{% endfor %}",
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_an_endless_prompt_ends(name: str) -> None:
    """Within its time it fails, its thread ends too, and so it keeps no slot from others."""
    begin = time.monotonic()
    given = context(replace(ISSUE, description="d" * (1 << 20)))

    async with trio.open_nursery() as nursery:
        messages: list[str] = []

        async def try_one() -> None:
            messages.append(await failure(ENDLESS[name], given, seconds=0.3))

        for _ in range(9):
            nursery.start_soon(try_one)

    assert messages == ["W:10: prompt: takes too long to render; it has 5 s"] * 9
    assert time.monotonic() - begin < 30
    assert await rendered("{{ attempt }}") == "0"


SLOW_STEP = "{{ issue.description|wordwrap(1)|length }}"


def slow(words: int) -> PromptContext:
    """Return a context with which the slow step takes long: a second for some 150,000 words."""
    return context(replace(ISSUE, description="d-" * words))


async def test_a_step_that_takes_long_is_abandoned() -> None:
    """What Python does in one go is left alone after its time; others are rendered meanwhile."""
    begin = time.monotonic()

    message = await failure(SLOW_STEP, slow(1 << 18), seconds=0.1)

    assert message == "W:10: prompt: takes too long to render; it has 5 s"
    assert time.monotonic() - begin < 30
    assert await rendered("{{ attempt }}") == "0"


async def test_abandoned_renderings_cannot_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are abandoned, no more than eight threads render, and the rest wait in vain."""
    messages: list[str] = []
    rendering: list[int] = [0]
    lock, render_one = threading.Lock(), renderer._rendered

    def counted(*args: Any) -> str:
        with lock:
            rendering.append(rendering[-1] + 1)
        try:
            return render_one(*args)
        finally:
            with lock:
                rendering.append(rendering[-1] - 1)

    async def try_one() -> None:
        messages.append(await failure(SLOW_STEP, slow(1 << 15), seconds=0.02))

    monkeypatch.setattr(renderer, "_rendered", counted)
    async with trio.open_nursery() as nursery:
        for _ in range(16):
            nursery.start_soon(try_one)

    assert messages == ["W:10: prompt: takes too long to render; it has 5 s"] * 16
    assert 1 < max(rendering) <= 8
    with trio.fail_after(60):
        while rendering[-1]:
            await trio.sleep(0.01)


class Rounds:
    """A clock that goes on when all threads that may render are in the midst of it, and then rings.

    However late a thread of a busy machine is, nothing but rounds takes time.
    """

    def __init__(self, bell: Alarm, seconds: float) -> None:
        self.bell = bell
        self.count = 0
        self._seconds = seconds
        self._end = threading.Barrier(8, action=self._go_on, timeout=60)

    def monotonic(self) -> float:
        """Do as ``time.monotonic``."""
        return 1000.0 + self.count * self._seconds

    def take_part(self) -> None:
        """Return when a round is over."""
        self._end.wait()

    def _go_on(self) -> None:
        self.count += 1
        with self.bell._lock:
            self.bell._ring(self.monotonic())


async def test_who_waits_behind_many_others_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt has its time from when it is begun: a thousand sessions may begin at once."""
    render_one, rounds = renderer._rendered, Rounds(Alarm(), seconds=0.5)

    def slowly(*args: Any) -> str:
        rounds.take_part()
        return render_one(*args)

    monkeypatch.setattr(renderer, "_rendered", slowly)
    monkeypatch.setattr(renderer, "_ALARM", rounds.bell)
    monkeypatch.setattr(rounds.bell, "_watch", lambda: None)
    monkeypatch.setattr(renderer._Rendering, "last_ended_at", 0.0)
    for module in (alarm, renderer, render_budget):
        monkeypatch.setattr(module, "time", rounds)
    texts: list[str] = []

    async def try_one() -> None:
        texts.append(await rendered("{{ attempt }}", seconds=1.0))

    async with trio.open_nursery() as nursery:
        for _ in range(240):
            nursery.start_soon(try_one)

    assert texts == ["0"] * 240
    assert rounds.count == 240 / 8


async def test_a_prompt_may_have_four_mebibytes() -> None:
    """Up to 4 MiB of UTF-8 pass, one byte more does not."""
    given = context(replace(ISSUE, description="ä" * ((2 << 20) - 1)))

    assert len((await rendered("{{ issue.description }}ab", given)).encode()) == 4 << 20
    assert await failure("{{ issue.description }}abc", given) == (
        "W:10: prompt: makes too much text; a prompt may have 4 MiB"
    )


async def test_issue_text_is_data() -> None:
    """Hostile titles come out as they are; only what no process can be handed is replaced."""
    title = "{{ 7*7 }}{% x %}../x\x1b[2J\x00\udc80" + "t" * (1 << 20)

    text = await rendered("{{ issue.title }}", context(replace(ISSUE, title=title)))

    assert text == title.replace("\x00", "\ufffd").replace("\udc80", "\ufffd")


async def test_an_empty_continuation_becomes_the_built_in_one() -> None:
    """A prompt that has nothing to say for a later turn need not say it."""
    source = "{% if not run.is_continuation %}Begin.{% endif %}\n"

    assert await rendered(source, context()) == "Begin."
    assert await rendered(source, context(turn=2)) == CONTINUATION_PROMPT


async def test_without_a_prompt_there_is_a_built_in_one() -> None:
    """It says what the issue is, where to work, and whether an attempt failed before."""
    given = context(replace(ISSUE, description="It is broken."), attempt=1)

    assert await rendered(" \n", given) == (
        "Work on the issue DEMO-1: Mend it\n\nIt is broken.\n\n"
        "Your working directory is /w/DEMO-1.\n"
        "An earlier attempt failed. Look at what it left here before you go on."
    )
    assert await rendered("", context()) == (
        "Work on the issue DEMO-1: Mend it\n\nYour working directory is /w/DEMO-1."
    )
    assert await rendered("", context(turn=2)) == CONTINUATION_PROMPT


def test_four_lines_explain_the_status_file() -> None:
    """They name the file and all words, after a blank line."""
    text = with_status_instructions("Work.\n", context())

    prompt, _, instructions = text.partition("\n\n")
    assert prompt == "Work."
    assert len(instructions.split("\n")) == 4
    assert all(word in instructions for word in (".sortie/status", *StatusWord))


def test_a_later_prompt_says_how_to_finish_once() -> None:
    """A line is added where the prompt does not speak of the file; the built-in one does."""
    text = with_status_instructions("Go on.\n", context(turn=2))

    assert text.startswith("Go on.\n\nWhen nothing is left to do, write the word done to the file")
    assert with_status_instructions(CONTINUATION_PROMPT, context(turn=2)) == CONTINUATION_PROMPT


async def test_cancelling_does_not_wait() -> None:
    """A run that is stopped while its prompt is rendered goes on at once."""
    begin = time.monotonic()

    with trio.move_on_after(0.05) as scope:
        await rendered(ENDLESS["loops"], seconds=60.0)

    assert scope.cancelled_caught
    assert time.monotonic() - begin < 30


async def test_virtual_time_does_not_cut_a_rendering(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The limit is real time: a test on a virtual clock renders as the daemon does."""
    assert await render(Prompt(source="{{ attempt }}"), context(), seconds=5.0) == "0"


async def test_a_thread_that_cannot_be_had_costs_no_later_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often there is none, what is rendered afterwards is rendered; nobody is blamed."""
    limit = ThreadLimit()
    with monkeypatch.context() as patched, trio.move_on_after(30):
        patched.setattr(renderer, "_ALARM", Alarm())
        patched.setattr(alarm, "start_new_thread", limit.start)
        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(rendered, "x")
            while limit.refused < 12:
                await trio.sleep(0.01)
            limit.reached = False

    assert await rendered("still here") == "still here"


async def test_memory_that_runs_out_is_not_the_templates_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is a shortage, and the prompt is rendered once that is over."""
    tries: list[int] = []

    def short(given: PromptContext) -> dict[str, Any]:
        tries.append(1)
        if len(tries) < 3:
            raise MemoryError
        return variables_of(given)

    monkeypatch.setattr(renderer, "variables_of", short)

    assert await rendered("{{ attempt }}") == "0"
    assert len(tries) == 3
