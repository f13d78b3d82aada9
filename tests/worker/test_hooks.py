"""A run's hooks: when they run, with what, and what their failure means."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sortie.model import ErrorKind, Failed, RunReport, Stopped
from sortie.model.secrets import redactor
from sortie.telemetry import facts
from tests.agents.fake import Silent
from tests.transports.fake import NEVER, Does
from tests.worker.rig import HOME, HOOKS, ROOT, RUN, USED, Rig


async def test_a_failing_after_create_takes_the_directory_with_it(clock: MockClock) -> None:
    """The run fails with the hook's last words, the directory is gone, no other hook has run."""
    rig = Rig(hooks={**HOOKS, "after_create": Does(status=3, output=b"cloning\nno network\n")})

    report = await rig.work()

    assert report.end == Failed(
        kind=ErrorKind.HOOK_FAILED, message="hook after_create: exit 3: no network"
    )
    assert f"{ROOT}/A" not in rig.transport.files.directories
    assert [ran.script for ran in rig.transport.ran] == ["after_create"]
    assert [fact.error for fact in rig.of(facts.WorkspaceRemoved)] == [None]
    rig.assert_nothing_open()


async def test_an_after_create_that_was_stopped_is_done_anew(clock: MockClock) -> None:
    """A directory whose after_create did not finish is removed and made again."""
    rig = Rig(hooks={**HOOKS, "after_create": Does(seconds=10, leaves={"half": b"done"})})
    stopped = await rig.work_stopped_at(5)
    rig.transport.scripts["after_create"] = Does()

    report = await rig.work()

    assert (stopped.end, report.end) == (Stopped(), USED)
    assert len(rig.transport.processes_of("after_create")) == 2
    assert f"{ROOT}/A/half" not in rig.transport.files.contents


async def test_a_failing_before_run_fails_the_run(clock: MockClock) -> None:
    """No session begins, after_run runs all the same, the directory stays."""
    rig = Rig(hooks={**HOOKS, "before_run": Does(status=1)})

    report = await rig.work()

    assert report == RunReport(
        end=Failed(kind=ErrorKind.HOOK_FAILED, message="hook before_run: exit 1: no output")
    )
    assert [ran.script for ran in rig.transport.ran] == ["after_create", "before_run", "after_run"]
    assert rig.agent.begun == []
    assert f"{ROOT}/A" in rig.transport.files.directories


async def test_a_hook_s_own_words_hold_no_half_of_a_secret(clock: MockClock) -> None:
    """The last line of what it printed is in the error, freed of secrets before it is cut."""
    line = b"z " * 143 + b"token hush-hush " + b"z " * 400
    rig = Rig(hooks={**HOOKS, "before_run": Does(status=1, output=b"one\n" + line)})
    rig.redact = redactor(["hush-hush"])

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.message.startswith("hook before_run: exit 1: z z")
    assert "hush" not in report.end.message


async def test_a_hook_out_of_time_is_ended(clock: MockClock) -> None:
    """A hook that hangs costs its time limit, and is told as a timeout."""
    rig = Rig(hooks={**HOOKS, "before_run": NEVER}, hooking={"timeout_ms": 7000})

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.HOOK_FAILED
    assert report.seconds == 7.0
    assert [(f.hook, f.result) for f in rig.of(facts.HookCompleted)] == [
        ("after_create", "ok"),
        ("before_run", "timeout"),
        ("after_run", "ok"),
    ]


async def test_a_failing_after_run_is_only_told(clock: MockClock) -> None:
    """The run's result stands; the hook's exit and output are published."""
    rig = Rig(hooks={"after_run": Does(status=4, output=b"oops")})

    report = await rig.work()

    assert report.end == USED
    hook = rig.of(facts.HookCompleted)[0]
    assert (hook.hook, hook.result, hook.status, hook.output) == (
        "after_run",
        "failed",
        "exit 4",
        "oops",
    )


async def test_hooks_and_agent_get_the_run_and_no_secret(clock: MockClock) -> None:
    """Both know issue, attempt, run and workspace; neither knows the tracker's key."""
    rig = Rig(hooks=HOOKS)
    rig.attempt = 3
    rig.environ |= {"ALSO_THE_KEY": "hush", "OWN": "x", "SORTIE_RUN_ID": "an outer run's"}

    await rig.work()

    variables = {
        "SORTIE_ISSUE_ID": "a",
        "SORTIE_ISSUE_IDENTIFIER": "A",
        "SORTIE_WORKSPACE": f"{ROOT}/A",
        "SORTIE_ATTEMPT": "3",
        "SORTIE_RUN_ID": RUN,
        "GIT_CEILING_DIRECTORIES": ROOT,
    }
    assert [ran.env for ran in rig.transport.ran] == [{"PATH": "/bin", **variables}] * 3
    assert rig.agent.envs == [{"PATH": "/bin", "OWN": "x", **variables}]


async def test_hooks_may_run_beside_the_workflow(clock: MockClock) -> None:
    """``run_on: orchestrator`` runs them in WORKFLOW.md's directory."""
    rig = Rig(hooks=HOOKS, hooking={"run_on": "orchestrator"})

    await rig.work()

    assert {ran.cwd for ran in rig.transport.ran} == {HOME}


async def test_a_cut_before_the_hook_skips_it(clock: MockClock) -> None:
    """A run that is cut in its turn ends its agent and runs no hook."""
    rig = Rig(hooks={"after_run": NEVER})
    rig.agent.scripts["A"] = [Silent(clings=2)]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.work)
        await trio.sleep(5)
        rig.scopes.cut()

    assert rig.transport.ran == []
    rig.assert_nothing_open()
