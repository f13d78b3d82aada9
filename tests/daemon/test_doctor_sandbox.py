"""The doctor enters each sandbox and says what held."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.agents import ADAPTERS
from sortie.config.sandbox import SandboxSettings
from sortie.config.settings import Settings
from sortie.daemon.doctor.sandbox import sandbox_checks
from sortie.model.checks import CheckOutcome, CheckResult
from tests.transports.containers import IMAGE, engine_environ, requires_containers, seen_by_tests
from tests.transports.endings import requires_namespaces, stop_adopting
from tests.transports.sandboxes import requires_bubblewrap
from tests.worker.rig import settings_of


async def found(
    sandbox: SandboxSettings,
    home: Path,
    program: str | None = None,
    kind: str = "kiro",
    **more: str,
) -> CheckResult:
    """Return what the check of a sandbox finds."""
    agent = {"kind": kind, "command": program}
    settings: Settings = settings_of(agent=agent).model_copy(
        update={
            "sandbox": sandbox,
            "db_path": str(home / "a.db"),
            "blocks": {kind: ADAPTERS.load(kind).block()},
        }
    )
    environ = {"PATH": os.environ["PATH"], **more, "HOME": str(home)}
    (check,) = sandbox_checks(settings, environ)
    try:
        return await check.ask()
    finally:
        stop_adopting()


@requires_namespaces
@requires_bubblewrap
@pytest.mark.parametrize(
    ("network", "told"),
    [("full", "the network is the host's"), ("none", "it reaches no server of this machine")],
)
async def test_bubblewrap_holds(tmp_path: Path, network: str, told: str) -> None:
    """It is said of the network what the settings want, and nothing is left behind."""
    sandbox = SandboxSettings.model_validate({"kind": "bubblewrap", "network": network})

    result = await found(sandbox, tmp_path)

    assert result.outcome is CheckOutcome.OK
    assert result.sentence == (
        f"a program in bubblewrap reads, changes and ends nothing outside; {told}"
    )
    assert [path.name for path in tmp_path.iterdir() if "doctor" in path.name] == []


@requires_namespaces
@requires_bubblewrap
@pytest.mark.parametrize("status", [0, 1])
async def test_what_hinders_the_agent_behind_a_wall_is_told(tmp_path: Path, status: int) -> None:
    """Codex tries its own sandbox there."""
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\necho bwrap: no namespace for $1 >&2\nexit {status}\n")
    program.chmod(0o755)
    sandbox = SandboxSettings(kind="bubblewrap", read=(str(program),))

    result = await found(sandbox, tmp_path, f"{program} app-server", kind="codex")

    assert result.outcome is (CheckOutcome.WARNING if status else CheckOutcome.OK), result
    assert ("bwrap: no namespace for sandbox" in result.sentence) is bool(status)


@requires_namespaces
@requires_bubblewrap
async def test_a_wall_that_shows_what_is_outside_is_told(tmp_path: Path) -> None:
    """Where the settings let everything through, the doctor says so."""
    sandbox = SandboxSettings(kind="bubblewrap", read=(str(tmp_path),), write=(str(tmp_path),))

    result = await found(sandbox, tmp_path)

    assert result.outcome is CheckOutcome.FAILED
    assert "files outside can be read, files outside can be changed" in result.sentence


async def test_a_wrapper_that_holds_nothing_is_a_warning(tmp_path: Path) -> None:
    """What a wrapper is for is its user's affair."""
    result = await found(SandboxSettings(kind="command", command="env"), tmp_path)

    assert result.outcome is CheckOutcome.WARNING
    assert "files outside can be read" in result.sentence


@requires_namespaces
async def test_where_there_is_no_bubblewrap_that_is_said(tmp_path: Path) -> None:
    """With what to do."""
    result = await found(SandboxSettings(kind="bubblewrap"), tmp_path, PATH=str(tmp_path))

    assert result.outcome is CheckOutcome.FAILED
    assert "bubblewrap" in result.sentence


def test_where_runs_are_on_hosts_none_is_tried() -> None:
    """And none without a sandbox."""
    assert sandbox_checks(settings_of(), {}) == []


def in_container() -> SandboxSettings:
    """Return the settings of a container in which programs of this machine are found."""
    read = tuple(seen_by_tests())
    return SandboxSettings(
        kind="container", image=IMAGE, read=read, network="none", engine="podman"
    )


@requires_containers
async def test_a_container_holds_and_has_the_agent(tmp_path: Path) -> None:
    """It is said what it keeps from what is in it."""
    result = await found(in_container(), tmp_path, "sh", **engine_environ())

    assert result.outcome is CheckOutcome.OK, result.sentence
    assert "reads, changes and ends nothing outside; it reaches no server" in result.sentence


@pytest.mark.full  # one path is looked for, and another container is made for it
@requires_containers
async def test_a_container_without_the_agent_is_told(tmp_path: Path) -> None:
    """It is said where the agent's program was looked for, too."""
    result = await found(in_container(), tmp_path, "no-such-agent", **engine_environ())

    assert result.outcome is CheckOutcome.FAILED
    assert f"neither in the image {IMAGE} of the sandbox" in result.sentence


@requires_containers
async def test_an_image_that_the_repository_names_is_left_to_runs(tmp_path: Path) -> None:
    """The engine is tried, and that it was no more is said."""
    sandbox = SandboxSettings(kind="container", devcontainer=True, engine="podman")

    result = await found(sandbox, tmp_path, **engine_environ())
    without = await found(sandbox, tmp_path, PATH=str(tmp_path))

    assert result.outcome is CheckOutcome.OK, result.sentence
    assert "the image is what the base of the repository names" in result.sentence
    assert without.outcome is CheckOutcome.FAILED
    assert "no podman" in without.sentence
