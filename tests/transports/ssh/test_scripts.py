"""What remote shells are given to run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sortie.model import TransportError
from sortie.transports import Command
from sortie.transports.ssh.scripts import (
    STRING_LIMIT,
    Launch,
    check_speakable,
    finish_script,
    launch_script,
    printing,
    quoted,
    text,
)


def test_the_inline_form_is_the_documented_one() -> None:
    """``cd -- '<workspace>' && KEY='...' <command> '<arg>' ...``, quoted as POSIX shells do."""
    given = Command(argv=("nice kiro-cli", "chat", "it's"), cwd="/w s", env={"KIRO_API_KEY": "a'b"})

    script = launch_script(Launch(command=given, nonce="n", lease=30, inline=True))

    line = b"cd -- '/w s' && KIRO_API_KEY='a'\\''b' nice kiro-cli 'chat' 'it'\\''s'\n"
    assert line in script


def test_nothing_is_started_where_nobody_is_there(tmp_path: Path) -> None:
    """A script whose stdin ends starts neither a program nor a watchdog."""
    given = Command(argv=("touch", "ran"), cwd=str(tmp_path), env={})
    script = launch_script(Launch(command=given, nonce="n", lease=30))

    ran = subprocess.run(["sh"], input=script, capture_output=True, timeout=20, check=True)

    assert ran.stdout.startswith(b"\1n here ")
    assert ran.stdout.count(b"\1") == 1
    assert ran.stderr == b""
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
def test_a_later_process_with_the_pid_is_not_ended() -> None:
    """A program is known by its pid and its start; neither alone is enough."""
    launch = Launch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        born = int(Path(f"/proc/{stranger.pid}/stat").read_bytes().split()[21])

        for ticks, expected in ((born - 1, None), (born, -15)):
            script = finish_script(launch, "n", stranger.pid, ticks, marked=True)
            said = finished(script)
            try:
                status = stranger.wait(0.1)
            except subprocess.TimeoutExpired:
                status = None

            assert (said, status) == (b"\1n here\n\1n yes \n\1n end\n", expected)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
@pytest.mark.parametrize("missed", [1, 2])
def test_one_that_a_look_has_missed_is_ended(tmp_path: Path, missed: int) -> None:
    """The list of processes is read one by one; who was not there yet is found by another look."""
    launch = Launch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    grep = tmp_path / "grep"
    grep.write_text(
        f"#!/bin/sh\necho look >>'{tmp_path}/looks'\n"
        f"[ $(wc -l <'{tmp_path}/looks') -gt {missed} ] && exec {shutil.which('grep')} \"$@\"\n"
    )
    grep.chmod(0o755)
    marked = f"ulimit -S -w {launch.marker} || ulimit -S -x {launch.marker}; exec sleep 1000"
    with subprocess.Popen(["sh", "-c", marked], stderr=subprocess.DEVNULL) as one:
        while str(launch.marker) not in Path(f"/proc/{one.pid}/limits").read_text():
            time.sleep(0.001)

        said = finished(finish_script(launch, "n", 0, 0, marked=True), f"{tmp_path}:{os.defpath}")

        assert (said, one.wait(5)) == (b"\1n here\n\1n yes \n\1n end\n", -15)


@pytest.mark.skipif(sys.platform != "linux", reason="it has pid namespaces")
def test_a_group_of_another_namespace_is_not_taken_for_our_own(tmp_path: Path) -> None:
    """Whose group was made outside (as by ``docker exec``) has the group 0: to kill it is us."""
    launch = Launch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    script = tmp_path / "finish"
    script.write_bytes(finish_script(launch, "n", 0, 0, marked=True))
    inside = (
        f"(ulimit -S -w {launch.marker} || ulimit -S -x {launch.marker}; exec sleep 1000)"
        " 2>/dev/null &"
        f"until grep -q {launch.marker} /proc/$!/limits; do :; done; setsid sh '{script}'"
    )
    # Its end ends everybody in there.
    unshare = ("unshare", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child")
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no pid namespace can be made here")

    with subprocess.Popen(
        [*unshare, "sh", "-c", inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as ran:
        assert ran.stdout is not None
        said = ran.stdout.read()

    assert said == b"\1n here\n\1n yes \n\1n end\n"


def finished(script: bytes, path: str = os.defpath) -> bytes:
    """Run a question whose answer somebody waits for, and return it."""
    with subprocess.Popen(
        ["sh"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": path},
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(script)
        shell.stdin.flush()
        return shell.stdout.read()


@pytest.mark.parametrize(
    "name", ["", "A B", "1A", "A-B", "BASH_FUNC_x%%", "A=B", "É", "A\n", "A;id"]
)
def test_a_variable_that_no_shell_can_export_is_refused(name: str) -> None:
    """It is named, and its value is not."""
    given = Command(argv=("true",), cwd="/", env={name: "secret"})

    with pytest.raises(TransportError) as caught:
        check_speakable(given, inline=False)

    assert repr(name) in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * STRING_LIMIT])
def test_what_no_program_can_be_given_is_refused_without_repeating_it(value: str) -> None:
    """Neither as an argument nor as a variable."""
    for given in (
        Command(argv=("true", value), cwd="/", env={}),
        Command(argv=("true",), cwd="/", env={"NAME": value}),
        Command(argv=("true",), cwd=value, env={}),
    ):
        with pytest.raises(TransportError) as caught:
            check_speakable(given, inline=False)
        assert value not in str(caught.value)


def test_quoting_and_printing_leave_nothing_to_a_shell() -> None:
    """A quoted word is one word, and printed bytes are octal whatever they are."""
    assert quoted("it's") == b"'it'\\''s'"
    assert printing(b"") == b":"
    assert printing(b"\0'%") == b"printf '\\000\\047\\045'"


def test_marks_differ_and_fit_a_shell() -> None:
    """Each launch has a mark of its own, of nineteen digits in 63 bits."""
    given = Command(argv=("true",), cwd="/", env={})
    marks = {Launch(command=given, nonce=str(n), lease=30).marker for n in range(1000)}

    assert len(marks) == 1000
    assert all(mark < 1 << 63 and len(str(mark)) == 19 for mark in marks)


def test_the_texts_are_sent_without_their_comments() -> None:
    """No comment goes over the wire, and no line of a here-document is lost."""
    assert b"\n#" not in text("start")
    assert text("start").startswith(b"say()")
