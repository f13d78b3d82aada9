"""This machine, whose programs start in a container: one for each run, made of an image, and one
for each clean clone in which its work is judged.

Rule 1: a container is there while its programs are, and removed before the run is over.
Rule 2: an image is pulled once, by the first run that needs it; the others wait for that.
"""

from __future__ import annotations

import os
import platform
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count

import trio
from msgspec.structs import replace

from sortie.model import ProgramNotFound, RunId, TransportError
from sortie.transports import COOKIE, Command, Process, Transport
from sortie.transports.local.fork_server.confinement import ARCHITECTURES
from sortie.transports.walls import GONE_VARIABLES, OpenedWall, RunImage, SandboxedTransport
from sortie.transports.walls.container import (
    Container,
    open_container,
    remove_former,
)
from sortie.transports.walls.container_choice import ContainerChoice, shown_by
from sortie.transports.walls.container_engine import ContainerEngine
from sortie.transports.walls.refusals import Refusals
from sortie.transports.walls.run_network import RunNetwork

_trials = count(1)

_OF_THE_MACHINE = (*GONE_VARIABLES, "SHELL")

_SEARCH = """case $1 in
  /*) [ -f "$1" ] && [ -x "$1" ] && printf %s "$1"; exit;;
  */*) exit 1;;
esac
IFS=:
for directory in $PATH; do
  file=$directory/$1
  case $file in /*) [ -f "$file" ] && [ -x "$file" ] && printf %s "$file" && exit;; esac
done
exit 1"""


class ContainerTransport(SandboxedTransport):
    """This machine, whose programs start in the container of their run.

    The engine's own programs run with ``environ``. With a ``network`` each program has one of its
    own instead of the container's.
    """

    def __init__(
        self,
        outside: Transport,
        choice: ContainerChoice,
        environ: Mapping[str, str],
        network: RunNetwork | None = None,
    ) -> None:
        super().__init__(outside)
        self._choice = choice
        self._environ = environ
        self._network = network
        self._engine: ContainerEngine | None = None
        self._making = trio.Lock()
        self._works = False
        self._containers: dict[str, dict[str, Container]] = {}  # of a run, by their directories
        self._images: dict[str, RunImage] = {}
        self._programs: dict[tuple[str, str | None, str], str] = {}
        self._refusals = Refusals()

    @property
    def image(self) -> str:
        """The image in which programs are looked for."""
        return self._choice.image or "of its development container"

    @property
    def wants_image(self) -> bool:
        """Whether each run says which image it is to have."""
        return self._choice.image is None

    @asynccontextmanager
    async def around(
        self, run_id: RunId, workspace: str, image: RunImage | None = None
    ) -> AsyncIterator[OpenedWall]:
        """Have the container of a run for a directory. Raises TransportError where it does not
        start."""
        image = image or self._images.get(run_id) or self._fixed_image
        assert image is not None
        async with self._container(run_id, workspace, image) as container:
            self._images[run_id] = image
            of_run = self._containers.setdefault(run_id, {})
            of_run[workspace] = container
            try:
                yield OpenedWall(
                    container=container.name, image=image.name, digest=container.digest
                )
            finally:
                del of_run[workspace]
                if not of_run:
                    del self._containers[run_id], self._images[run_id]

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program in the container of its run; see the port."""
        of_run = self._containers.get(command.env.get(COOKIE, ""))
        if of_run is None:
            raise TransportError(f"could not start {command.argv[0]}: its run has no container")
        # A directory that none has is looked for in the first, which is the workspace's.
        around = (made for place, made in of_run.items() if shown_by(command.cwd, (place,)))
        container = next(around, next(iter(of_run.values())))
        return self._started(inside(command, container))

    def _started(self, command: Command) -> AbstractAsyncContextManager[Process]:
        if self._network is None:
            return self.outside.process(command)
        return self._network.process(self.outside, command)

    async def check(self) -> None:
        """Start a program in a container, once, after what earlier lives left was removed.

        Raises TransportError, and CredentialsError where the agent has no credential that could be
        put in.
        """
        if self._network is not None:
            self._network.check(self._environ)
        if not self._works:
            await self._refusals.or_repeat("check", self._try)

    async def _try(self) -> None:
        check_machine(platform.machine())
        await remove_former(await self._found(), self._choice.daemon)
        await self._try_program()

    async def _try_program(self) -> None:
        """Start a program in a container of the image."""
        image = self._fixed_image
        if image is None:
            self._works = True  # what there is to be tried is known when a run begins
            return
        async with self._trial(image) as container:
            command = Command(argv=("/bin/sh", "-c", "exit 0"), cwd="/", env={}, grace=0.0)
            status, said = await self._said(inside(command, container))
        if status != 0:
            why = said.decode("utf-8", "replace").strip() or f"it ended with {status}"
            raise TransportError(f"no program works in a container of {self._choice.image}: {why}")
        self._works = True

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable in the containers.

        What was found in an image is not looked for again. Where each run has its own, that of the
        newest run is looked into; while there is none, the name is returned as it is.
        """
        image = self._fixed_image or next(reversed(self._images.values()), None)
        if image is None:
            return name
        found = self._programs.get((name, path, image.name))
        if found is None:
            search = partial(self._search, name, path, image)
            found = await self._refusals.or_repeat(("program", name, path, image.name), search)
            self._programs[name, path, image.name] = found
        return found

    async def _search(self, name: str, path: str | None, image: RunImage) -> str:
        async with AsyncExitStack() as opened:
            alike = (run for run, its in self._images.items() if its == image)
            container = next((c for run in alike for c in self._containers[run].values()), None)
            if container is None:
                container = await opened.enter_async_context(self._trial(image))
            argv = ("/bin/sh", "-c", _SEARCH, "sh", name)
            env = {"PATH": os.defpath if path is None else path}
            command = inside(Command(argv=argv, cwd="/", env=env, grace=0.0), container)
            status, found = await self._said(command)
        if status != 0 or not found:
            raise ProgramNotFound(
                f"could not find the program {name!r} in the image {image.name} of the"
                f" sandbox, nor in what is mounted there; looked in {command.env['PATH']}"
            )
        return os.fsdecode(found)

    async def _said(self, command: Command) -> tuple[int | None, bytes]:
        """Run a program in a container; return its status and all that it has said."""
        async with self._started(command) as process:
            said = b"".join([chunk async for _, chunk in process.output()])
            return (await process.wait()).status, said

    @property
    def _fixed_image(self) -> RunImage | None:
        """The image that all runs have, None where each has its own."""
        name = self._choice.image
        return None if name is None else RunImage(name=name, environ={})

    def _trial(self, image: RunImage) -> AbstractAsyncContextManager[Container]:
        """Have a container of no run."""
        return self._container(RunId(f"trial-{next(_trials)}"), None, image)

    @asynccontextmanager
    async def _container(
        self, run_id: RunId, workspace: str | None, image: RunImage
    ) -> AsyncIterator[Container]:
        engine = await self._found()
        async with self._making:
            await engine.image(image.name)
        plan = await trio.to_thread.run_sync(self._choice.plan, run_id, workspace, image)
        async with open_container(engine, plan) as container:
            yield container

    async def _found(self) -> ContainerEngine:
        async with self._making:
            if self._engine is None:
                self._engine = await self._find_engine()
            return self._engine

    async def _find_engine(self) -> ContainerEngine:
        return await ContainerEngine.find(self._choice.engine, self._environ)


def inside(command: Command, container: Container) -> Command:
    """Return a command in a container. Its environment is the image's, and over it its own, but
    where programs lie is a matter of the image."""
    image = container.environ
    own = {name: value for name, value in command.env.items() if name not in _OF_THE_MACHINE}
    path = {"PATH": image["PATH"]} if "PATH" in image else {}
    env = {**image, **own, **path}
    return replace(command, env=env, container=container.entrance)


def check_machine(machine: str) -> None:
    """Raise TransportError for a kind of machine on which there is no container."""
    if machine not in ARCHITECTURES:
        raise TransportError(
            f"a container is no wall on {machine}: the filter of system calls is"
            f" known for {' and '.join(ARCHITECTURES)} only; use sandbox.kind: bubblewrap"
        )
