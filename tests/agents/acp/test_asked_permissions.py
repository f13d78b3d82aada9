"""Permissions about which people are asked: what is one and the same, and what is granted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sortie.acp.events import PermissionRequested
from sortie.agents.acp.reader import ReaderContext, UpdateReader
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.permissions import PermissionRules
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.questions import PERMISSION_OPTIONS, QUESTION_LIMIT, Question
from tests.agents.acp.scripted import Stage
from tests.agents.acp.test_parts import NOW

ASKS = AcpSettings(
    permissions=PermissionRules(
        inside={"default": "ask", "read": "allow"}, outside={"default": "ask"}
    )
)
OPTIONS = tuple(
    {"optionId": word, "kind": word} for word in ("allow_always", "allow_once", "reject_once")
)
DEPLOY = {"kind": "execute", "title": "Deploy", "rawInput": {"command": "make deploy", "why": "x"}}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


class Asker:
    """A process of an agent after another; ``questions`` were asked of people."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def process(
        self,
        *granted: str,
        once: str | None = None,
        denied: str | None = None,
        asks: bool = True,
    ) -> UpdateReader:
        """Return the reader of a new process."""
        permissions = None
        if asks:
            permissions = AskedPermissions(self.questions.append, granted, once, denied)
        reader = UpdateReader(
            ReaderContext(
                agent="Copilot",
                workspace="/w",
                settings=ASKS,
                now=lambda: NOW,
                redacted=lambda text: text.replace("hush", "***"),
                permissions=permissions,
            )
        )
        reader.begin()
        return reader

    def name_of(self, call: Mapping[str, Any]) -> str:
        """Return what identifies what a call asks for."""
        permit(self.process(), call)
        name = self.questions[-1].permission
        assert name is not None
        return name


def permit(reader: UpdateReader, call: Mapping[str, Any], id_: str = "c1") -> str | None:
    told = {"toolCallId": id_, **call}
    answer, _ = reader.permit(PermissionRequested(id=1, call=told, options=OPTIONS))
    return answer.option_id


def test_people_are_asked_once_in_a_turn() -> None:
    """The request is refused, the turn has to end, and what comes meanwhile is refused too."""
    asker = Asker()
    reader = asker.process()

    answers = [permit(reader, DEPLOY), permit(reader, {**DEPLOY, "kind": "edit"}, "c2")]

    assert answers == ["reject_once", "reject_once"]
    assert (reader.waits_for_people, reader.is_cut_short) == (True, True)
    (question,) = asker.questions
    assert question.text == "The agent asks for a permission: execute: Deploy: make deploy"
    assert (question.options, question.default) == (PERMISSION_OPTIONS, None)


def test_what_is_allowed_once_is_granted_once() -> None:
    """It is answered with the option for once; the next request is asked about again."""
    asker = Asker()
    reader = asker.process(once=asker.name_of(DEPLOY))

    assert [permit(reader, DEPLOY), permit(reader, DEPLOY, "c2")] == ["allow_once", "reject_once"]
    assert len(asker.questions) == 2


def test_what_is_allowed_for_the_issue_is_granted_again() -> None:
    """Each time, and still not for always: the agent may be another's tomorrow."""
    asker = Asker()
    reader = asker.process(asker.name_of(DEPLOY))

    assert [permit(reader, DEPLOY, f"c{n}") for n in range(3)] == ["allow_once"] * 3
    assert not reader.waits_for_people


def test_people_are_not_asked_again_in_the_run_that_they_denied_it() -> None:
    """It is refused, and the turn goes on; they are asked about anything else."""
    asker = Asker()
    reader = asker.process(denied=asker.name_of(DEPLOY))

    assert permit(reader, DEPLOY) == "reject_once"
    assert (reader.is_cut_short, len(asker.questions)) == (False, 1)
    permit(reader, {**DEPLOY, "kind": "edit"}, "c2")
    assert (reader.is_cut_short, len(asker.questions)) == (True, 2)


def test_without_questions_it_is_denied() -> None:
    """Nobody is asked, and the agent goes on without it."""
    reader = Asker().process(asks=False)

    assert permit(reader, DEPLOY) == "reject_once"
    assert not reader.is_cut_short
    assert permit(reader, {"kind": "read", "locations": [{"path": "a"}]}, "c2") == "allow_once"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"title": "Deploy it, as the issue asks"}, True),
        ({"rawInput": {"command": "make deploy", "why": "as you said"}}, True),
        ({"rawInput": {"command": "make deploy; rm -rf /", "why": "x"}}, False),
        ({"rawInput": {"command": "make deploy" + " " * 4000 + "; rm x"}}, False),
        ({"rawInput": {"command": "make deploy", "cwd": "/w/prod"}}, False),
        ({"locations": [{"path": "/etc/passwd"}]}, False),
        ({"kind": "fetch"}, False),
    ],
)
def test_the_same_command(other: dict[str, Any], same: bool) -> None:
    """A command is itself in its own directory, whatever is said about it."""
    asker = Asker()

    assert (asker.name_of(DEPLOY) == asker.name_of({**DEPLOY, **other})) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"path": "a", "content": "x"}, {"path": "a", "content": "y"}, True),
        ({"path": "a", "content": "x"}, {"path": "b", "content": "x"}, False),
    ],
)
def test_the_same_files(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    """An edit is known by its files; any other tool by all that it is given."""
    asker = Asker()

    names = [asker.name_of({"kind": "edit", "rawInput": given}) for given in (one, other)]
    others = [
        asker.name_of({"kind": "other", "title": "t", "rawInput": given}) for given in (one, other)
    ]

    assert (names[0] == names[1]) is same
    assert others[0] != others[1]


def test_a_question_shows_what_is_asked_for() -> None:
    """All of a command that is not too long, without secrets; else it says that it is cut."""
    asker = Asker()
    long = {"kind": "execute", "rawInput": {"command": "echo hush " + "x " * 2000}}

    asker.name_of({"kind": "execute", "rawInput": {"command": "echo hush " + "y " * 1000}})
    asker.name_of(long)

    whole, cut = (question.text for question in asker.questions)
    assert whole.count("y") == 1000
    assert "characters, cut]" in cut
    assert "hush" not in whole + cut
    assert len(cut) <= QUESTION_LIMIT


async def test_the_turn_ends_and_goes_on(stage: Stage) -> None:
    """With a real process: refused, ended, and granted in the conversation that goes on."""
    made, asked = stage.workspace / "made", list[Question]()
    stage.params = stage.with_permissions(AskedPermissions(asked.append, (), None))

    refused, _ = await stage.turn(f"acp: tool edit {made}", settings=ASKS)
    assert (refused.outcome.value, made.exists()) == ("completed", False)
    (question,) = asked
    assert question.permission is not None
    stage.params = stage.with_permissions(AskedPermissions(asked.append, (), question.permission))
    await stage.turn(f"acp: tool edit {made}", settings=ASKS)

    assert made.exists()
    assert len(asked) == 1
