"""A shell that is kept in a pod for questions runs programs in between, and comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from sortie.model import ProgramNotFound
from sortie.transports import COOKIE, Command, Stdin
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.workspaces import Workspaces
from tests.contract.transport.launching import everything
from tests.kubernetes_api.server import Api
from tests.run_ids import own_run_id

LIMIT = 90.0

pytestmark = pytest.mark.stand_in


@pytest.fixture
async def workspace(
    api: Api, transport: KubernetesTransport, root: Path, tmp_path: Path
) -> AsyncIterator[str]:
    """Give the path of a workspace in a pod."""
    supervisors = tmp_path / "supervisors"
    supervisors.mkdir()
    api.kubelet.variables = {"LC_ALL": "C.UTF-8", "TMPDIR": str(supervisors)}
    with trio.fail_after(LIMIT):
        yield (await Workspaces(str(root), transport).prepare("T-1")).path


def command(path: str, *argv: str, stdin: Stdin | None = None) -> Command:
    env = {"PATH": os.environ["PATH"], COOKIE: own_run_id("run")}
    return Command(argv=argv, cwd=path, env=env, stdin=stdin, grace=1.0)


async def said_by(transport: KubernetesTransport, path: str, script: str) -> dict[int, bytes]:
    """Return what a program writes that ends well."""
    async with transport.process(command(path, "sh", "-c", script)) as process:
        said = await everything(process)
        assert (await process.wait()).status == 0
    return said


def execs(api: Api) -> int:
    return sum(method == "EXEC" for method, _ in api.requests)


async def test_a_program_in_a_pod_that_lives_needs_no_exec(
    api: Api, transport: KubernetesTransport, root: Path, workspace: str
) -> None:
    """Neither do questions in between; each program has both of its streams."""
    with trio.fail_after(LIMIT):
        before, seen = execs(api), []
        for number in range(3):
            seen.append(await said_by(transport, workspace, f"echo {number}; echo bad >&2"))
            assert await transport.files.contained(f"{root}/T-1", workspace)

    assert seen == [{1: b"%d\n" % number, 2: b"bad\n"} for number in range(3)]
    assert execs(api) == before


async def test_programs_have_the_locale_of_the_pod(
    transport: KubernetesTransport, workspace: str
) -> None:
    """Not that of the shell in which questions are answered."""
    with trio.fail_after(LIMIT):
        said = [await said_by(transport, workspace, 'echo "$LC_ALL"') for _ in range(2)]

    assert [one[1] for one in said] == [b"C.UTF-8\n"] * 2


async def test_a_program_that_is_missing_takes_nothing_along(
    transport: KubernetesTransport, workspace: str
) -> None:
    """Its shell is ended, and the next program has another one."""
    with trio.fail_after(LIMIT):
        with pytest.raises(ProgramNotFound):
            async with transport.process(command(workspace, "no-such-program")):
                pass
        said = await said_by(transport, workspace, "echo here")

    assert said[1] == b"here\n"


@pytest.mark.parametrize("who", ["send1", "send2", "link"])
async def test_a_program_goes_on_where_what_carries_its_streams_is_killed(
    transport: KubernetesTransport, workspace: str, tmp_path: Path, who: str
) -> None:
    """Over another link; the shell does not go on as if nothing had happened."""
    with trio.fail_after(LIMIT):
        script = "echo begun; read x; echo out $x; echo err >&2"
        begun = command(workspace, "sh", "-c", script, stdin=Stdin.PIPE)
        async with transport.process(begun) as process:
            assert process.stdin is not None
            output = process.output()
            said = {1: (await anext(output))[1], 2: b""}
            while not (noted := _noted(tmp_path, who)):
                await trio.sleep(0.01)
            os.kill(noted, signal.SIGKILL)
            await process.stdin.send_all(b"told\n")
            await process.stdin.aclose()
            async for stream, chunk in output:
                said[stream] += chunk
            exit_ = await process.wait()
        after = await said_by(transport, workspace, "echo after")

    assert (said, exit_.status) == ({1: b"begun\nout told\n", 2: b"err\n"}, 0)
    assert after[1] == b"after\n"


def _noted(directory: Path, who: str) -> int:
    """Return the pid of who works for an attachment, 0 where none is noted."""
    found = [one.read_text() for one in directory.glob(f"supervisors/*/at.1/{who}")]
    return int(found[0].split()[0]) if found and found[0] else 0


async def test_an_argument_cannot_end_the_script_that_it_stands_in(
    transport: KubernetesTransport, workspace: str
) -> None:
    """Whatever lines it has."""
    words = "SORTIE_SUPERVISOR\nSORTIE_WATCHDOG\nEOF\n'\n}\n)\nexit 3\n"
    with trio.fail_after(LIMIT):
        said = []
        for _ in range(2):
            async with transport.process(command(workspace, "printf", "%s", words)) as process:
                said.append((await everything(process))[1])
                assert (await process.wait()).status == 0

    assert said == [words.encode()] * 2
