"""Several operations on one host's files, of which each may depend on what the ones before found.

They are written once, as a generator that yields the operations and is sent what came of them, and
are performed where that costs least: on this machine in one thread, which is woken once for all of
them, and one after the other by whatever else has files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from sortie.model import TransportError
from sortie.resources import Shortage, run_in_thread
from sortie.transports import Files

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnStep:
    """Something that this process finds out by itself, and that may block."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class FileStep:
    """An operation of Files by its name, and what it is given."""

    operation: str
    arguments: tuple[Any, ...]


Steps = Generator[FileStep | OwnStep, Any, T]
"""Operations in their order; what a TransportError of one means is theirs to say."""


class FilesByThread(ABC):
    """Files that a thread can reach: many operations need no more of them than one does."""

    @abstractmethod
    async def perform(self, steps: Steps[T]) -> T:
        """Perform steps in one thread, and return what they come to."""


def performed(steps: Steps[T], do: Callable[[FileStep], Any]) -> T:
    """Perform steps, those with files by ``do``, and return what they come to. Blocks."""
    try:
        step = next(steps)
        while True:
            try:
                answer = step.work() if isinstance(step, OwnStep) else do(step)
            except TransportError as exc:
                step = steps.throw(exc)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def perform(files: Files, steps: Steps[T]) -> T:
    """Perform steps on a host's files, and return what they come to. Raises TransportError."""
    if isinstance(files, FilesByThread):
        return await files.perform(steps)
    try:
        step = next(steps)
        while True:
            try:
                answer = await _answer(files, step)
            except TransportError as exc:
                step = steps.throw(exc)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def _answer(files: Files, step: FileStep | OwnStep) -> Any:
    if isinstance(step, FileStep):
        return await getattr(files, step.operation)(*step.arguments)
    try:
        return await run_in_thread(step.work)
    except Shortage as exc:
        raise TransportError(str(exc)) from exc


def own(work: Callable[[], T]) -> Steps[T]:
    """Do something that may block."""
    answer: T = yield OwnStep(work)
    return answer


def make_directory(root: str, name: str) -> Steps[tuple[str, bool]]:
    """Do as ``Files.make_directory``."""
    made: tuple[str, bool] = yield FileStep("make_directory", (root, name))
    return made


def read_file(directory: str, name: str, limit: int) -> Steps[bytes | None]:
    """Do as ``Files.read_file``."""
    content: bytes | None = yield FileStep("read_file", (directory, name, limit))
    return content


def read_file_inside(root: str, directory: str, name: str, limit: int) -> Steps[bytes | None]:
    """Do as ``Files.read_file_inside``."""
    arguments = (root, directory, name, limit)
    content: bytes | None = yield FileStep("read_file_inside", arguments)
    return content


def write_file(directory: str, name: str, content: bytes) -> Steps[None]:
    """Do as ``Files.write_file``."""
    yield FileStep("write_file", (directory, name, content))


def remove_file(directory: str, name: str) -> Steps[None]:
    """Do as ``Files.remove_file``."""
    yield FileStep("remove_file", (directory, name))


def contained(root: str, path: str) -> Steps[bool]:
    """Do as ``Files.contained``."""
    inside: bool = yield FileStep("contained", (root, path))
    return inside
