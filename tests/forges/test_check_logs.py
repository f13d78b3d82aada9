"""Why a check has failed, and having it made again."""

from __future__ import annotations

import pytest

from sortie.forges.check_logs import LOG_BYTES, last_lines
from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.pull_requests import CheckState, HeadCheck
from tests.forges.rig import BRANCH, Rig
from tests.trackers.server.faults import Refuse

LOG = (
    b"\xef\xbb\xbfbegin\r\n\x1b[31;1mred\x1b[0m\r\n10%\r50%\r100%\r\n\x1b]0;title\x07bad\x00\xff\n"
)


def test_the_last_lines_are_plain_text() -> None:
    """Without colours, titles, control characters, and what was written over."""
    assert last_lines(LOG, 2) == "100%\nbad\ufffd"
    assert last_lines(LOG, 9).splitlines()[:2] == ["begin", "red"]
    assert last_lines(b"", 5) == ""
    assert last_lines(b"a\n\n\n", 5) == "a"
    assert last_lines(b"a\nb", 0) == ""
    assert "\x1b" not in last_lines(b"\x1b[\x1b\x1b]8;;http://x\x1b\\a\x1b", 3)
    assert (
        last_lines("section_start:1:name\r\x1b[0Kstep\nsection_end:2:name\r\x1b[0K\n", 5) == "step"
    )
    assert len(last_lines("x" * 9000, 1)) < 2100


async def _check(rig: Rig, forge: object, name: str) -> HeadCheck:
    opened = await rig.open_one(forge)  # type: ignore[arg-type]
    state = (await forge.look([opened]))[opened.id]  # type: ignore[attr-defined]
    found: HeadCheck = next(check for check in state.checks if check.name == name)
    return found


async def test_the_end_of_a_log_is_read(rig: Rig) -> None:
    """However long it is; Gitea has none. GitHub's lies elsewhere and gets no credential."""
    rig.push()
    log = b"noise\n" * (3 * LOG_BYTES // 6) + LOG
    notes = (("src/a.py", 3, "E501 too\n long"),)
    rig.service.set_check(BRANCH, "test", "failure", log=log, annotations=notes)
    async with rig.opened() as forge:
        text = await forge.check_log(await _check(rig, forge, "test"), 3)

    if rig.kind == "gitea":
        assert text == ""
        return
    lines = text.splitlines()
    assert lines[-3:] == ["red", "100%", "bad\ufffd"]
    assert len(lines) == (4 if rig.kind == "github" else 3)
    if rig.kind == "github":
        assert lines[0] == "src/a.py:3: failure: E501 too long"
        assert rig.server.count(path="^/logs/") == 1


async def test_what_has_no_log_has_none(rig: Rig) -> None:
    """A status, a check that is expected, a job whose log is gone."""
    rig.push()
    rig.service.set_check(BRANCH, "ci/other", "failure", status=True)
    rig.service.set_check(BRANCH, "test", "failure", log=b"bad")
    async with rig.opened() as forge:
        status = await _check(rig, forge, "ci/other")
        expected = HeadCheck(id="expected:x", name="x", state=CheckState.PENDING)
        rig.server.inject(Refuse(status=410), path="/logs$|/trace$", times=9)
        opened = await forge.find(BRANCH)
        assert opened is not None
        checks = (await forge.look([opened]))[opened.id].checks
        gone = next(check for check in checks if check.name == "test")
        texts = [await forge.check_log(check, 5) for check in (status, expected, gone)]

    assert texts == ["", "", ""]


async def test_what_another_app_says_is_shown(github: Rig) -> None:
    """It has no job."""
    github.push()
    github.service.set_check(BRANCH, "circle", "failure", app="circleci", log=b"3 failed")
    async with github.opened() as forge:
        text = await forge.check_log(await _check(github, forge, "circle"), 5)

    assert text == "It failed\n3 failed"
    assert github.server.count(path="/actions/") == 0


async def test_a_log_that_may_not_be_read_is_an_error(github: Rig) -> None:
    """And no log without a word in it."""
    github.push()
    github.service.set_check(BRANCH, "test", "failure", log=b"bad")
    async with github.opened() as forge:
        check = await _check(github, forge, "test")
        github.server.inject(Refuse(status=403), path="/logs$")
        with pytest.raises(TrackerError):
            await forge.check_log(check, 5)
        github.server.inject(
            Refuse(status=302, headers={"Location": "file:///etc/passwd"}), path="/logs$"
        )
        with pytest.raises(TrackerError) as refused:
            await forge.check_log(check, 5)

    assert refused.value.kind is TrackerErrorKind.UNAVAILABLE


@pytest.mark.parametrize("app", ["github-actions", "circleci"])
async def test_a_check_is_made_again(rig: Rig, app: str) -> None:
    """Where the forge can do that; and it is seen that it is."""
    rig.push()
    rig.service.set_check(BRANCH, "test", "failure", app=app)
    rig.service.set_check(BRANCH, "ci/other", "failure", status=True)
    async with rig.opened() as forge:
        check = await _check(rig, forge, "test")
        done = await forge.rerun(check)
        again = await forge.rerun(check)
        opened = await forge.find(BRANCH)
        assert opened is not None
        states = {c.name: c for c in (await forge.look([opened]))[opened.id].checks}
        of_status = await forge.rerun(states["ci/other"])

    can = rig.kind != "gitea"
    assert done is can
    assert not of_status
    assert rig.service.reruns[:1] == (["test"] if can else [])
    assert (states["test"].state is CheckState.PENDING) is can
    if rig.kind == "gitlab" or (can and app == "github-actions"):
        assert not again
