"""Who belongs to a run on a remote host, in tables of processes."""

from __future__ import annotations

import uuid

from sortie.model import ProcessIdentity, RunId
from sortie.resources.process_identity import started_at
from sortie.transports.ownership import ProcessOwnership
from sortie.transports.remote.process_table import RemoteProcess, read_processes

BOOT = str(uuid.uuid4())
RUN = RunId("run")
ME = 900


class Runs(ProcessOwnership[RemoteProcess]):
    """The runs that are looked for, by the process ME."""

    def find(self, seen: dict[int, RemoteProcess]) -> dict[int, RemoteProcess]:
        self.recognise(seen, ME)
        return self.staying


def stat(
    pid: int,
    ppid: int = 1,
    *,
    sid: int | None = None,
    state: str = "S",
    threads: int = 1,
    ticks: int = 1000,
    name: str = "tool",
) -> bytes:
    """Return what the host shows of /proc/<pid>/stat (proc(5)); group and session are the same."""
    group = pid if sid is None else sid
    head = f"/proc/{pid}/stat:{pid} ({name}) {state} {ppid} {group} {group} 0 -1 4194304"
    return f"{head} {'0 ' * 10}{threads} 0 {ticks} 0".replace("  ", " ").encode() + b"\n\0"


def environ(**cookies: str) -> bytes:
    """Return what the host shows of environments: ``p12="run"`` is pid 12's cookie."""
    return b"".join(
        f"/proc/{pid[1:]}/environ:SORTIE_RUN_ID={cookie}\0".encode()
        for pid, cookie in cookies.items()
    )


def table(*lines: bytes, **cookies: str) -> dict[int, RemoteProcess]:
    return read_processes(BOOT, b"".join([stat(ME, 899), stat(899, 1), *lines]), environ(**cookies))


def root(pid: int, ticks: int = 1000) -> dict[RunId, ProcessIdentity]:
    """Return a recorded root process."""
    recorded = started_at(BOOT, stat(pid, ticks=ticks))
    return {RUN: ProcessIdentity(pid=pid, started_at=recorded)}


def found(runs: Runs, seen: dict[int, RemoteProcess]) -> list[int]:
    return sorted(runs.find(seen))


def test_what_no_kernel_says_is_passed_over() -> None:
    """A host may say what it likes; the other processes are found all the same."""
    huge = "9" * 5000
    lines = [
        b"/proc/7/stat:7 (x) " + b"x " * 30 + b"\n\0",
        stat(8).replace(b" 1000 ", f" {huge} ".encode()),
    ]
    lines.append(stat(9).replace(b" 1000 ", b" " + b"9" * 400 + b" "))
    environs = b"/proc/me/environ:SORTIE_RUN_ID=run\0" + environ(p10="run")
    environs += f"/proc/{huge}/environ:SORTIE_RUN_ID=run\0".encode()

    seen = read_processes(BOOT, b"".join([*lines, stat(10)]), environs)

    assert found(Runs([RUN], {}), seen) == [10]
    assert list(seen) == [10]


def test_a_cookie_and_all_that_descends_from_it_are_found() -> None:
    """Children need no cookie of their own; other runs are left alone."""
    seen = table(stat(10), stat(11, 10), stat(12, 11), stat(20), p10="run", p20="other")

    runs = Runs([RUN], {})

    assert found(runs, seen) == [10, 11, 12]
    assert runs.runs_of([seen[12]]) == {RUN}


def test_all_runs_are_found_in_one_pass() -> None:
    """Each process is told with its own runs."""
    seen = table(stat(10), stat(20), p10="run", p20="other")

    runs = Runs([RUN, RunId("other")], {})

    assert found(runs, seen) == [10, 20]
    assert runs.runs_of([seen[20]]) == {RunId("other")}


def test_what_we_look_with_is_never_found() -> None:
    """Neither our shell nor the sshd it descends from, whatever their cookie."""
    assert found(Runs([RUN], {}), table(stat(10), p900="run", p899="run", p10="run")) == [10]


def test_a_recorded_root_is_known_by_its_start_and_boot() -> None:
    """It needs no cookie; a later process with its pid is a stranger."""
    seen = table(stat(10), stat(11, 10), stat(12, sid=10))

    assert found(Runs([RUN], root(10)), seen) == [10, 11, 12]
    assert found(Runs([RUN], root(10, ticks=999)), seen) == []


def test_a_root_that_became_another_run_is_a_stranger() -> None:
    """The cookie of an unwanted run outweighs pid, session and group."""
    seen = table(stat(10), stat(12, sid=10), p10="other", p12="other")

    assert found(Runs([RUN], root(10)), seen) == []


def test_a_session_stays_a_runs_while_somebody_known_is_in_it() -> None:
    """The root may die first; when nobody is left, the number is forgotten."""
    runs = Runs([RUN], root(10))

    assert found(runs, table(stat(10), stat(12, sid=10))) == [10, 12]
    assert found(runs, table(stat(12, sid=10), stat(13, sid=10))) == [12, 13]
    assert found(runs, table()) == []
    assert found(runs, table(stat(13, sid=10, ticks=2000))) == []


def test_who_descends_from_a_known_process_stays_known_without_it() -> None:
    """An orphan is remembered by its pid and start, and a later process with its pid is not it."""
    runs = Runs([RUN], {})

    assert found(runs, table(stat(10), stat(11, 10), p10="run")) == [10, 11]
    assert found(runs, table(stat(11, 1))) == [11]
    assert found(runs, table(stat(11, 1, ticks=2000))) == []


def test_zombies_are_dead_unless_their_threads_go_on() -> None:
    """A program whose main thread has left the others looks like a zombie and lives."""
    seen = table(
        stat(10, state="Z"), stat(11, state="Z", threads=3), stat(12, 10), p11="run", p12="run"
    )

    assert found(Runs([RUN], root(10)), seen) == [11, 12]


def test_nonsense_in_names_and_lines_is_borne() -> None:
    """A program's name may hold anything; what ended while it was read is left out."""
    seen = read_processes(
        BOOT,
        stat(10, name="a) R 1 2 3\n11 (b) S 1\n(c", ticks=7)
        + b"/proc/11/stat:11 (half) S 1\n\0\xff\n\n\0",
        b"/proc/10/environ:SORTIE_RUN_ID=\xff\xfe\0garbage\0/proc/10/environ:SORTIE_RUN_ID=b\0",
    )

    assert list(seen) == [10]
    assert (seen[10].handle.ticks, seen[10].cookie) == (7, "\ufffd\ufffd")


def test_the_identity_is_that_of_the_local_transport() -> None:
    """A process has one identity, whoever reads its stat."""
    seen = table(stat(10, ticks=4711))

    expected = started_at(BOOT, stat(10, ticks=4711))
    assert seen[10].identity == ProcessIdentity(pid=10, started_at=expected)
