"""Profiles: that samples go into the right parts, and that a row can be profiled at all."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.benchmarks.page import PAGE
from tests.benchmarks.profile import __main__ as command
from tests.benchmarks.profile import page
from tests.benchmarks.profile.__main__ import main
from tests.benchmarks.profile.machine_parts import of_machine, system_calls
from tests.benchmarks.profile.parts import fold, outside, part_of, read_stacks
from tests.benchmarks.profile.profiles import PROFILED, Profile
from tests.benchmarks.profile.report import as_markdown, as_text
from tests.benchmarks.profile.samplers import program
from tests.benchmarks.row import named
from tests.benchmarks.table import ROWS
from tests.benchmarks.test_page import MACHINE

SAMPLES = Path(__file__).parent / "samples"

CALLS = """\
    calls syscall
--------- ----------------
      106 futex
       28 openat
--------- ----------------
      134 total
"""


def profile(name: str, unit: str = "ms") -> Profile:
    return Profile(
        name=name,
        unit=unit,
        amount=8.0,
        parts={"worker": 6.0, "store": 1.98, "web": 0.02},
        own={"worker": 4.0},
        functions={"run (sortie/worker/run.py)": 4.0},
        waiting=0.5,
        sampled=9.0,
        explained=0.8,
        machine={"SQLite": 8.0},
        machine_explained=0.95,
        counts={"waits": 12.0, "of them futex": 100.0},
    )


def test_a_sample_belongs_to_the_innermost_part() -> None:
    """Recorded stacks: what libraries do is their caller's, but for threads, trio and starts."""
    stacks = list(read_stacks((SAMPLES / "stacks.txt").read_text()))

    assert [(stack.tid, stack.count, part_of(stack)) for stack in stacks] == [
        (14090, 2, "starts of programs"),
        (14088, 1, "store"),
        (14084, 1, "telemetry: log lines"),
        (14084, 1, "starts and wake-ups of threads"),
        (14084, 1, "starts and wake-ups of threads"),
        (14094, 1, "transports"),
        (14084, 2, "agents"),
        (14084, 1, "scheduler"),
        (14084, 1, "other libraries"),
        (14084, 1, "trio itself"),
        (14999, 2, "other libraries"),
    ]


def test_a_wait_for_a_program_takes_no_processor_time() -> None:
    """It holds the lock, and is told apart; what could not be read counts as a part."""
    folded = fold(read_stacks((SAMPLES / "stacks.txt").read_text()), unreadable=3)

    assert folded.waiting == 2
    assert folded.total == 15
    assert folded.parts["starts of programs"] == 0
    assert folded.parts["not read in time"] == 3
    assert folded.own.total() == 6
    assert folded.functions["Scheduler.wakeup_at (sortie/scheduler/core.py)"] == 1


def test_what_threads_did_without_the_lock_is_their_clock_without_their_samples() -> None:
    """By kinds of threads; a thread that was never seen is one of many."""
    folded = fold(read_stacks((SAMPLES / "stacks.txt").read_text()))

    found = outside(folded, 100, {14084: 0.5, 14088: 0.25, 14094: 0.001, 77: 0.125})

    assert found == pytest.approx(
        {
            "the loop's thread": 0.42,
            "the database's thread": 0.24,
            "the thread that removes cgroups": 0.0,
            "threads for what may wait": 0.125,
        }
    )


def test_what_the_processor_runs_is_told_by_library_and_system_call() -> None:
    """Recorded by perf: the interpreter, libraries, and the kernel by what it was asked for."""
    assert of_machine([(SAMPLES / "machine.txt").read_text()]) == Counter(
        {
            "interpreter and its own C code": 1,
            "SQLite": 1,
            "C library": 1,
            "kernel: locks and wake-ups of threads (futex)": 1,
            "kernel: to disk (fdatasync, pwrite)": 1,
            "kernel: files and directories": 1,
            "kernel: memory (page faults, maps)": 1,
            "kernel: starts of programs and threads": 1,
            "kernel: read, write, sockets, epoll": 1,
            "kernel: interrupts, switches, the rest": 1,
        }
    )


def test_system_calls_are_counted_over_all_windows() -> None:
    """The head and the sum of what strace says are no calls."""
    assert system_calls([CALLS, CALLS]) == {"futex": 212, "openat": 56}


def test_tables_come_to_what_the_row_took() -> None:
    """Parts stand with their shares, the largest first, and those that are small everywhere
    together; a row without a part has none there."""
    other = profile("b", "%")

    lines = as_text([profile("a"), other]).splitlines()

    assert lines[:5] == [
        "part of the program  a           b",
        "worker               6.00 (75%)  6.00 (75%)",
        "store                1.98 (25%)  1.98 (25%)",
        "1 smaller ones       0.02 (0%)   0.02 (0%)",
        "all                  8.00 ms     8.00 %",
    ]
    assert lines[-2:] == [
        "function, with what libraries do for it  b",
        "run (sortie/worker/run.py)               4.00 (50%)",
    ]
    assert "| all | 8.00 ms | 8.00 % |" in as_markdown([profile("a"), other]).splitlines()


def test_profiled_rows_are_rows_of_the_table() -> None:
    """They are chosen as these are, and measured by the same."""
    measures = {row.name: row.measure for row in ROWS}

    assert [(row.name, measures[row.name]) for row in PROFILED] == [
        (row.name, row.measure) for row in PROFILED
    ]
    assert [row.name for row in named(PROFILED, ["remote", "runs"])] == [
        "runs.8.cpu",
        "runs.64.cpu",
        "remote.cpu",
    ]
    with pytest.raises(KeyError):
        named(PROFILED, ["idle"])


def test_profiles_go_onto_the_page_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was profiled replaces what stood there, but not in the short mode."""
    copy, results = tmp_path / "performance.md", tmp_path / "results.json"
    before = PAGE.read_text()
    copy.write_text(before)
    monkeypatch.setattr("tests.benchmarks.page.PAGE", copy)
    told = {name: getattr(profile("turn.cpu"), name) for name in Profile.__dataclass_fields__}
    content = {"machine": MACHINE, "short": True, "profiles": [told]}

    results.write_text(json.dumps(content))
    assert page.main([str(results)]) == 1
    assert copy.read_text() == before
    results.write_text(json.dumps(content | {"short": False}))
    assert page.main([str(results)]) == 0

    after = copy.read_text()
    assert "| part of the program | `turn.cpu` |\n| --- | --- |\n| worker | 6.00 (75%) |" in after
    assert "Profiled on 2 cores (a processor, x86_64), Linux 6.1" in after
    head, _, rest = before.partition("Profiled on ")
    assert after.startswith(head)
    assert after.endswith(rest[rest.index("\n## ") :])


def test_without_py_spy_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no dependency of the tests."""
    monkeypatch.setattr(command, "program", lambda _: None)

    assert main(["turn", "--short"]) == 1
    assert capsys.readouterr().err == "there is no py-spy; get it with: pip install py-spy\n"


@pytest.mark.skipif(
    sys.platform != "linux" or program("py-spy") is None or os.geteuid() != 0,
    reason="profiling needs Linux, py-spy and root",
)
@pytest.mark.parametrize("name", ["turn.cpu", pytest.param("talking.200", marks=pytest.mark.full)])
def test_a_row_can_be_profiled(name: str, tmp_path: Path) -> None:
    """Its parts come to what it takes, and so does what the processor runs, where perf is there;
    what is counted without samples is there, too."""
    there = tmp_path / "profile.json"

    assert main([name, "--short", "--json", str(there)]) == 0

    results = json.loads(there.read_text())
    (found,) = results["profiles"]
    assert results["short"] is True
    assert found["name"] == name
    assert sum(found["parts"].values()) == pytest.approx(found["amount"])
    if program("perf") is not None:
        assert sum(found["machine"].values()) == pytest.approx(found["amount"])
    assert {"waits", "threads", "programs", "threads woken for work"} <= set(found["counts"])
    assert found["counts"]["waits"] > 0
