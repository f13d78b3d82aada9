"""What the system raises for want of something is known as that, wherever it was raised from."""

from __future__ import annotations

import errno
import os

import pytest

from sortie.model import TransportError
from sortie.resources import Resource, Shortage, shortage_behind
from sortie.resources.shortages import of_exit, of_fork

SHORT = {
    OSError(errno.EMFILE, "Too many open files"): Resource.FILES,
    OSError(errno.ENFILE, "Too many open files in system"): Resource.FILES,
    OSError(errno.ENOMEM, "Cannot allocate memory"): Resource.MEMORY,
    OSError(errno.ENOBUFS, "No buffer space available"): Resource.MEMORY,
    MemoryError(): Resource.MEMORY,
    RuntimeError("can't start new thread"): Resource.PROCESSES,
    Shortage(Resource.PROCESSES, "none left"): Resource.PROCESSES,
}


@pytest.mark.parametrize(("error", "resource"), SHORT.items(), ids=repr)
def test_shortages_are_known(error: Exception, resource: Resource) -> None:
    """Each is known by itself and behind the errors that were made of it."""
    wrapped = TransportError("could not")
    wrapped.__cause__ = ValueError()
    wrapped.__cause__.__cause__ = error

    found = [shortage_behind(error), shortage_behind(wrapped)]

    assert [shortage and shortage.resource for shortage in found] == [resource, resource]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOENT, os.strerror(errno.ENOENT)),
        BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
        RuntimeError("generator raised StopIteration"),
        ValueError(),
    ],
    ids=repr,
)
def test_what_is_none_is_not_taken_for_one(error: Exception) -> None:
    """Nothing to read yet, for one, is no shortage."""
    assert shortage_behind(error) is None


def test_a_refused_fork_is_a_shortage() -> None:
    """There EAGAIN means that the limit of processes is reached."""
    shortage = of_fork(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)))

    assert shortage is not None
    assert shortage.resource is Resource.PROCESSES


def test_a_group_of_shortages_is_one() -> None:
    """A nursery makes a group of what its tasks raise; a bug among them is not hidden."""
    no_files = OSError(errno.EMFILE, "Too many open files")
    group = ExceptionGroup("tasks", [ExceptionGroup("tasks", [no_files]), MemoryError()])
    wrapped = TransportError("could not")
    wrapped.__cause__ = group

    found = [shortage_behind(group), shortage_behind(wrapped)]

    assert [shortage and shortage.resource for shortage in found] == [Resource.FILES] * 2
    assert shortage_behind(ExceptionGroup("tasks", [no_files, ValueError()])) is None


def test_an_error_that_is_raised_from_its_own_group_is_looked_at_once() -> None:
    """The one expected failure of a group is raised so."""
    refused = ValueError("refused")
    refused.__cause__ = ExceptionGroup("tasks", [refused])

    assert shortage_behind(refused) is None
    assert shortage_behind(refused.__cause__) is None


LOADER = "/usr/bin/bot: error while loading shared libraries: libc.so.6: "


@pytest.mark.parametrize(
    ("status", "said", "resource"),
    [
        (127, LOADER + "failed to map segment from shared object", Resource.MEMORY),
        (127, LOADER + "cannot create shared object descriptor: Cannot allocate memory", "memory"),
        (127, LOADER + "cannot open shared object file: Too many open files", Resource.FILES),
        (127, LOADER + "cannot open shared object file: No such file or directory", None),
        (127, "sh: 1: bot: not found", None),
        (127, "", None),
        (126, "env: 'node': Cannot allocate memory", Resource.MEMORY),
        (126, "bash: /usr/bin/bot: Permission denied", None),
        (2, "sh: 1: Cannot fork", Resource.PROCESSES),
        (254, "bash: fork: retry: Resource temporarily unavailable", Resource.PROCESSES),
        (1, "a tool said: Cannot allocate memory", None),
        (127, "Cannot allocate memory\nsh: 1: bot: not found", None),
        (None, "Cannot allocate memory", None),
    ],
)
def test_the_last_words_of_a_loader_or_shell_tell_a_shortage(
    status: int | None, said: str, resource: Resource | None
) -> None:
    """A status that usually means that there is no such program says nothing of it then."""
    shortage = of_exit(status, f"{said}\n")

    assert (shortage and shortage.resource) == resource
