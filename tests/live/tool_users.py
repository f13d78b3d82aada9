"""Five real agents with a scripted model, in each place where a daemon can have them work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.live.acp_agents import PROGRAMS
from tests.live.claude import HERE, claude_program, quiet_environ
from tests.live.codex import CODEX_KEY, VERSIONS, codex_program
from tests.live.model_answers import ToolUse
from tests.live.model_server import ModelServer
from tests.transports.containers import IMAGE, require_engine, seen_by_tests, variables_of_engines

Blocks = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolUser:
    """An agent: how it is started, finds its model, and is told by that to use a tool.

    ``program`` is the file that npm has installed, ``name`` what it is called on PATH. ``prefix``
    is what its model puts before the names of Sortie's tools, ``namespace`` where Responses has
    them.
    """

    name: str
    program: Callable[[], Path]
    environ: Callable[[ModelServer], Mapping[str, str]]
    kind: str = "acp"
    arguments: tuple[str, ...] = ()
    prefix: str = ""
    namespace: str | None = None
    blocks: Blocks = field(default_factory=dict)
    configure: Callable[[Path, str], None] = lambda _home, _url: None

    def use(self, tool: str, arguments: Mapping[str, Any]) -> ToolUse:
        """Return the model's wish to use a tool of Sortie's."""
        return ToolUse(name=f"{self.prefix}{tool}", input=arguments, namespace=self.namespace)


def _acp(name: str, prefix: str) -> ToolUser:
    known = PROGRAMS[name]
    return ToolUser(
        name=name,
        program=lambda: Path(known.command()[-len(known.arguments) - 1]),
        arguments=known.arguments,
        environ=lambda server: known.environ(server.url(HERE)),
        configure=known.configure,
        prefix=prefix,
        blocks={"acp": known.settings},
    )


def _codex(name: str, version: str) -> ToolUser:
    return ToolUser(
        name=name,
        kind="codex",
        program=lambda: codex_program(version),
        arguments=("app-server",),
        environ=lambda server: {
            "OPENAI_API_KEY": CODEX_KEY,
            "OPENAI_BASE_URL": f"{server.url(HERE)}/v1",
        },
        namespace="mcp__sortie",
        blocks={"codex": {"model": "gpt-5"}},
    )


CODEX_BEFORE = f"codex-{VERSIONS[0]}"
TOOL_USERS = {
    user.name: user
    for user in (
        ToolUser(
            name="claude",
            kind="claude-code",
            program=claude_program,
            environ=quiet_environ,
            prefix="mcp__sortie__",
            blocks={"claude-code": {"permission_mode": "dontAsk"}},
        ),
        _acp("opencode", "sortie_"),
        _acp("gemini", "mcp_sortie_"),
        _acp("copilot", "sortie-"),
        _codex("codex", VERSIONS[-1]),
    )
}
OTHER_VERSIONS = {CODEX_BEFORE: _codex(CODEX_BEFORE, VERSIONS[0])}


@dataclass(frozen=True, kw_only=True)
class Rig:
    """An agent in a place: what its daemon's workflow and environment have for it."""

    user: ToolUser
    blocks: Blocks
    environ: Mapping[str, str]


def rig_of(
    user: ToolUser, where: str, place: Place, server: ModelServer, fleet: Fleet | None
) -> Rig:
    """Install an agent in a place, on a host where there is a fleet. Skips where it cannot be
    had."""
    program = user.program()
    environ, home = dict(user.environ(server)), place.home
    blocks: dict[str, Any] = {}
    if fleet is not None:
        (host,) = fleet.add("far", has_program=False)
        home = host.home
        blocks |= fleet.blocks(worker={"ssh_pass_env": sorted(environ)})
    (home / "bin").mkdir(exist_ok=True)
    named, called = home / "bin" / user.name, user.name
    named.symlink_to(program)
    user.configure(home, server.url(HERE))
    if fleet is None:
        environ["PATH"] = f"{named.parent}:{os.environ['PATH']}"
    if "bubblewrap" in where:
        blocks["sandbox"] = {"kind": "bubblewrap"}
    elif where == "container":
        engine, called = require_engine("podman"), str(named)
        modules = next(str(above) for above in program.parents if above.name == "node_modules")
        # The image is empty; Copilot does not start without certificates.
        read = [*seen_by_tests(), "/etc/ssl", modules, str(named.parent)]
        blocks["sandbox"] = {"kind": "container", "image": IMAGE, "engine": engine, "read": read}
        environ |= variables_of_engines(engine)
    agent = {"kind": user.kind, "command": [called, *user.arguments], "max_turns": 3}
    blocks["agent"] = agent | {"read_timeout_ms": 60_000}
    return Rig(user=user, blocks=blocks | dict(user.blocks), environ=environ)
