"""What remote shells are given to run."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sortie.model import TransportError
from sortie.transports import Command
from sortie.transports.remote.launch_scripts import launch_script
from sortie.transports.remote.questions import finish_body
from sortie.transports.remote.remote_launch import STRING_LIMIT, RemoteLaunch, check_speakable
from sortie.transports.remote.scripts import (
    LEAVE,
    printing,
    question_script,
    quoted,
    shell_script,
    text,
)
from sortie.transports.remote.transport import new_nonce
from tests.transports.leftovers import is_alive


def test_the_inline_form_is_the_documented_one() -> None:
    """``cd -- '<workspace>' && KEY='...' <command> '<arg>' ...``, quoted as POSIX shells do."""
    given = Command(argv=("nice kiro-cli", "chat", "it's"), cwd="/w s", env={"KIRO_API_KEY": "a'b"})

    script = launch_script(RemoteLaunch(command=given, nonce="n", lease=30, inline=True))

    line = b"cd -- '/w s' && KIRO_API_KEY='a'\\''b' nice kiro-cli 'chat' 'it'\\''s'\n"
    assert line in script


def test_nothing_is_started_where_nobody_is_there(tmp_path: Path) -> None:
    """A script whose stdin ends starts neither a program nor a watchdog."""
    given = Command(argv=("touch", "ran"), cwd=str(tmp_path), env={})
    script = launch_script(RemoteLaunch(command=given, nonce="n", lease=30))

    ran = subprocess.run(["sh"], input=script, capture_output=True, timeout=20, check=True)

    assert ran.stdout.startswith(b"\1n here ")
    assert ran.stdout.count(b"\1") == 1
    assert ran.stderr == b""
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
def test_a_later_process_with_the_pid_is_not_ended() -> None:
    """A program is known by its pid and its start; neither alone is enough."""
    launch = RemoteLaunch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        born = int(Path(f"/proc/{stranger.pid}/stat").read_bytes().split()[21])

        for ticks, expected in ((born - 1, None), (born, -15)):
            script = finishing(launch, stranger.pid, ticks)
            said = finished(script)
            try:
                status = stranger.wait(0.1)
            except subprocess.TimeoutExpired:
                status = None

            assert (said, status) == (b"\1n here\n\1n yes \n\1n end 0\n", expected)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
@pytest.mark.parametrize("missed", [1, 2])
def test_one_that_a_look_has_missed_is_ended(tmp_path: Path, missed: int) -> None:
    """The list of processes is read one by one; who was not there yet is found by another look,
    also where the host does not count its pids."""
    launch = RemoteLaunch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    grep = tmp_path / "grep"
    grep.write_text(
        f"#!/bin/sh\necho look >>'{tmp_path}/looks'\n"
        f"[ $(wc -l <'{tmp_path}/looks') -gt {missed} ] && exec {shutil.which('grep')} \"$@\"\n"
    )
    grep.chmod(0o755)
    (tmp_path / "loadavg").write_text("0.00 0.00 0.00 0/0 0\n")
    script = finishing(launch)
    script = script.replace(b"/proc/loadavg", str(tmp_path / "loadavg").encode())
    with marked_sleep(launch) as one:
        said = finished(script, f"{tmp_path}:{os.defpath}")

        assert (said, one.wait(5)) == (b"\1n here\n\1n yes \n\1n end 0\n", -15)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")
@pytest.mark.parametrize("count", [1, 3])
def test_one_that_comes_while_the_list_is_read_is_ended(tmp_path: Path, count: int) -> None:
    """Who is younger than the list is looked at apart, however often one comes."""
    launch = RemoteLaunch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    pids, grep = tmp_path / "pids", tmp_path / "grep"
    pids.touch()
    grep.write_text(
        "#!/bin/sh\n"
        f"[ $(wc -l <'{pids}') -lt {count} ] || exec {shutil.which('grep')} \"$@\"\n"
        f"{shlex.join(_marked(launch))} </dev/null >/dev/null 2>&1 &\n"
        f"echo $! >>'{pids}'\n"
        f"until {shutil.which('grep')} -q {launch.marker} /proc/$!/limits; do :; done\n"
    )
    grep.chmod(0o755)

    said = finished(finishing(launch), f"{tmp_path}:{os.defpath}")

    assert said == b"\1n here\n\1n yes \n\1n end 0\n"
    assert len(pids.read_text().split()) == count
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())


def _marked(launch: RemoteLaunch) -> list[str]:
    """Return the arguments of a process with a launch's mark, in a session of its own."""
    mark = f"ulimit -S -w {launch.marker} || ulimit -S -x {launch.marker}"
    return ["setsid", "sh", "-c", f"exec 2>/dev/null; {mark}; exec sleep 1000"]


@contextmanager
def marked_sleep(launch: RemoteLaunch) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that carries a launch's mark."""
    with subprocess.Popen(_marked(launch)) as one:
        while str(launch.marker) not in Path(f"/proc/{one.pid}/limits").read_text():
            time.sleep(0.001)
        try:
            yield one
        finally:
            one.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="it has pid namespaces")
def test_a_group_of_another_namespace_is_not_taken_for_our_own(tmp_path: Path) -> None:
    """Whose group was made outside (as by ``docker exec``) has the group 0: to kill it is us."""
    launch = RemoteLaunch(command=Command(argv=("x",), cwd="/", env={}), nonce="n", lease=30)
    script = tmp_path / "finish"
    script.write_bytes(finishing(launch))
    inside = (
        f"(ulimit -S -w {launch.marker} || ulimit -S -x {launch.marker}; exec sleep 1000)"
        " 2>/dev/null &"
        f"until grep -q {launch.marker} /proc/$!/limits; do :; done; cat '{script}' - | setsid sh"
    )
    # Its end ends everybody in there.
    unshare = ("unshare", "--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child")
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no pid namespace can be made here")

    with subprocess.Popen(
        [*unshare, "sh", "-c", inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as ran:
        said = answer(ran)

    assert said == b"\1n here\n\1n yes \n\1n end 0\n"


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
        shell.stdin.write(script)
        shell.stdin.flush()
        return answer(shell)


def finishing(launch: RemoteLaunch, pid: int = 0, born: int = 0) -> bytes:
    """Return a script that ends what is left of a launch."""
    return shell_script("n") + question_script(finish_body(launch, pid, born, marked=True))


def answer(shell: subprocess.Popen[bytes]) -> bytes:
    """Return what a shell says to its first question, and let it go."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    said = b""
    while b" end " not in said and (line := shell.stdout.readline()):
        said += line
    shell.stdin.write(LEAVE)
    shell.stdin.close()
    return said


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
    marks = {RemoteLaunch(command=given, nonce=str(n), lease=30).marker for n in range(1000)}

    assert len(marks) == 1000
    assert all(mark < 1 << 63 and len(str(mark)) == 19 for mark in marks)


def test_the_texts_are_sent_without_their_comments() -> None:
    """No comment goes over the wire, and no line of a here-document is lost."""
    assert b"\n#" not in text("start")
    assert text("start").startswith(b"say()")


def test_a_watchdog_needs_no_process_to_pass_its_text_on() -> None:
    """dash gives a pipe 4,096 bytes by itself; for more it starts another process."""
    given = Command(argv=("true",), cwd="/", env={})

    script = launch_script(RemoteLaunch(command=given, nonce=new_nonce(), lease=30))

    text = script.split(b"<<'SORTIE_WATCHDOG' &\n")[1].split(b"\nSORTIE_WATCHDOG\n")[0]
    assert len(text) < 4096
