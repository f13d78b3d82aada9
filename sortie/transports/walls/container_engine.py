"""The command line of a container engine, podman or docker: how it is asked, and what it answers.

Rule: no argument holds a secret, as everybody on the machine can read the arguments of programs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio
from msgspec import Struct

from sortie.model import ProgramNotFound, TransportError

ENGINES = ("podman", "docker")
"""Looked for on the PATH in this order, where none is named."""

_ANSWER_BOUND = 120.0
"""Seconds for a command that reaches no registry; an idle machine takes a fraction of one."""

_PULL_BOUND = 1800.0

CAP_SYS_RESOURCE = 24
"""The capability to raise limits, by its number."""

_NEEDED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS")
_NEEDED_BEGINNINGS = ("XDG_", "CONTAINER", "DOCKER_", "REGISTRY_AUTH_FILE", "STORAGE_", "BUILDAH_")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


class EngineImage(Struct, frozen=True, kw_only=True):
    """What an engine knows of an image: the ``digest`` by which its registry knows it, or the
    engine's own where it came from none, and the environment that it gives its programs."""

    digest: str
    environ: Mapping[str, str]


class ContainerEngine(Struct, frozen=True, kw_only=True):
    """An engine by the absolute path of its program. ``environ`` is what it is run with: no secret
    of a tracker.

    ``rootless``: its containers are this ordinary user's, in a user namespace of theirs.
    ``limits_are_bound``: this process is root and may yet raise no limit of a process.
    """

    program: str
    environ: Mapping[str, str]
    rootless: bool = False
    limits_are_bound: bool = False

    @property
    def name(self) -> str:
        """The engine's kind."""
        return os.path.basename(self.program)

    @property
    def is_podman(self) -> bool:
        """Whether it takes the options that podman has and docker has not."""
        return self.name.startswith("podman")

    @classmethod
    async def find(cls, wanted: str | None, environ: Mapping[str, str]) -> ContainerEngine:
        """Return the engine of this name or path, or the first that is installed, once it answers.

        Raises ProgramNotFound, and TransportError where it does not work or its containers are
        another user's, so that no program could be put into them.
        """
        environ = {name: value for name, value in environ.items() if _is_needed(name)}
        path = environ.get("PATH", os.defpath)
        names = ENGINES if wanted is None else (wanted,)
        program = next((p for name in names if (p := shutil.which(name, path=path))), None)
        if program is None:
            raise ProgramNotFound(
                f"sandbox.kind is container, but there is no {' and no '.join(names)} on the PATH;"
                " install podman, or choose another kind"
            )
        engine = cls(program=program, environ=environ)
        rootless = await engine.is_rootless()
        if os.geteuid() != 0 and not rootless:
            raise TransportError(
                f"{engine.name} runs its containers as root, and this is user {os.geteuid()}: a"
                " container would be no wall, as whoever may ask that engine is root in effect;"
                " use podman, or docker in its rootless mode"
            )
        if os.geteuid() != 0:
            return cls(program=program, environ=environ, rootless=True)
        return cls(program=program, environ=environ, limits_are_bound=not _may_raise_limits())

    async def is_rootless(self) -> bool:
        """Tell whether its containers are in a user namespace of an ordinary user."""
        if self.is_podman:
            said = await self.ask("info", "--format", "{{.Host.Security.Rootless}}")
            return said.strip() == "true"
        return "name=rootless" in await self.ask("info", "--format", "{{.SecurityOptions}}")

    async def ask(self, *arguments: str, bound: float = _ANSWER_BOUND) -> str:
        """Run a command of the engine and return what it says; raise TransportError."""
        status, said, complaint = await self._run(arguments, bound)
        if status != 0:
            raise TransportError(f"{self._shown(arguments)} ended with {status}: {complaint}")
        return said

    async def try_(self, *arguments: str) -> bool:
        """Tell whether a command ends with success."""
        return (await self._run(arguments, _ANSWER_BOUND))[0] == 0

    async def image(self, image: str) -> EngineImage:
        """Return what is known of an image, which is pulled where this machine has none of its
        name.

        An image of a name that was pulled before is not asked for anew. Raises TransportError.
        """
        found = await self._image(image)
        variables = (found.get("Config") or {}).get("Env") or ()
        environ = dict(entry.partition("=")[::2] for entry in variables)
        digest = digest_of(found, image).removeprefix("sha256:")
        return EngineImage(digest=digest, environ=environ)

    async def _image(self, image: str) -> dict[str, Any]:
        status, said, _ = await self._run(("image", "inspect", image), _ANSWER_BOUND)
        if status != 0:
            await self.ask("pull", "--quiet", image, bound=_PULL_BOUND)
            said = await self.ask("image", "inspect", image)
        (found,) = json.loads(said)
        return dict(found)

    async def containers(self, label: str) -> list[str]:
        """Return the names of all containers with a label, those that have ended too."""
        shown = ("--filter", f"label={label}", "--format", "{{.Names}}")
        return (await self.ask("ps", "--all", *shown)).split()

    async def remove(self, containers: Sequence[str]) -> None:
        """Kill containers and remove them; those that are gone already do not matter."""
        if not containers:
            return
        now = ("--time", "0", "--ignore") if self.is_podman else ()
        _, _, complaint = await self._run(
            ("rm", "--force", "--volumes", *now, *containers), _ANSWER_BOUND
        )
        left = [one for one in containers if await self.try_("container", "inspect", one)]
        if left:
            raise TransportError(
                f"{self.name} could not remove the containers {', '.join(left)}: {complaint}"
            )

    def _shown(self, arguments: Sequence[str]) -> str:
        return " ".join((self.name, *arguments[:2]))

    async def _run(self, arguments: Sequence[str], bound: float) -> tuple[int, str, str]:
        """Return the status, what was said, and the last line of what was complained of."""
        with trio.move_on_after(bound):
            done = await trio.run_process(
                [self.program, *arguments],
                check=False,
                env=self.environ,
                cwd="/",
                stdin=b"",
                capture_stdout=True,
                capture_stderr=True,
                process_group=0,
                deliver_cancel=_kill_group,
            )
            complaint = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            return done.returncode, done.stdout.decode(errors="replace"), complaint
        raise TransportError(f"{self._shown(arguments)} did not end in {bound:.0f} s")


def digest_of(found: Mapping[str, Any], image: str) -> str:
    """Return the digest of an image by what an engine tells of it; ``image`` is its name."""
    named, _, wanted = image.partition("@")
    digests = [one.partition("@")[::2] for one in found.get("RepoDigests") or ()]
    base, _, end = named.rpartition(":")
    name = base if base and "/" not in end else named  # of a port there is no more than a path
    for repository, digest in digests:
        if digest == wanted or (not wanted and f"/{repository}".endswith(f"/{name}")):
            return str(digest)
    return str(digests[0][1] if digests else found["Id"])


def _may_raise_limits() -> bool:
    """Tell whether this process has CAP_SYS_RESOURCE."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1)
    return False


def _is_needed(name: str) -> bool:
    """Tell whether an engine may need a variable to find files, or a registry."""
    known = name in _NEEDED or name.lower() in _PROXIES
    return known or name.startswith(_NEEDED_BEGINNINGS)


async def _kill_group(process: trio.Process) -> None:
    """Kill the engine's program with what it has started for this command."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
