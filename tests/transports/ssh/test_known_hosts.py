"""Which hosts are trusted, and what is remembered of them."""

from __future__ import annotations

import fcntl
import hmac
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import asyncssh
import pytest

from sortie.model import HostError, HostTrouble
from sortie.transports.ssh import known_hosts
from sortie.transports.ssh.known_hosts import HostKeys, KnownHosts
from sortie.transports.ssh.route import Hop

Strict = Literal["yes", "accept-new", "no"]
OURS = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
OTHER = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
ECDSA = asyncssh.generate_private_key("ecdsa-sha2-nistp256").convert_to_public()


def _line(name: str, key: asyncssh.SSHKey) -> str:
    return f"{name} {' '.join(key.export_public_key('openssh').decode().split()[:2])}\n"


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """Give the path of known_hosts, in a directory that is not there yet."""
    return tmp_path / "new" / "known_hosts"


def _hop(known: Path, *more: Path, port: int = 2222) -> Hop:
    return Hop(
        name="box",
        host="box",
        port=port,
        user="u",
        key_name="box" if port == 22 else f"[box]:{port}",
        known_hosts=(str(known), *map(str, more)),
        identity_files=(),
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def _refusal(keys: HostKeys, key: asyncssh.SSHKey) -> str:
    assert not keys.accepts(key)
    assert keys.refused is not None
    assert keys.refused.trouble is HostTrouble.HOST_KEY
    return str(keys.refused)


def test_a_new_host_is_remembered_with_accept_new(known: Path) -> None:
    """The key is written before it is accepted, to a file that only we may read."""
    keys = HostKeys(_hop(known), "accept-new", "box")

    assert keys.accepts(OURS)

    assert known.read_text() == _line("[box]:2222", OURS)
    assert known.stat().st_mode & 0o777 == 0o600
    assert known.parent.stat().st_mode & 0o777 == 0o700


def test_a_line_is_added_after_what_is_there(known: Path) -> None:
    """Existing text stays to the byte, also where its last line is not terminated or not valid."""
    before = "# mine\nbroken line\n\udcff other " + _line("x", OTHER).strip()
    known.parent.mkdir()
    known.write_bytes(before.encode("utf-8", "surrogateescape"))

    assert HostKeys(_hop(known), "accept-new", "box").accepts(OURS)

    assert known.read_text(errors="surrogateescape") == f"{before}\n{_line('[box]:2222', OURS)}"


def test_a_known_host_is_accepted_in_every_mode(known: Path) -> None:
    """A key that stands in any of the files is accepted, and nothing is written."""
    second = known.parent.parent / "second"
    second.write_text(_line("[box]:2222", OURS))

    for strict in ("yes", "accept-new", "no"):
        assert HostKeys(_hop(known, second), strict, "box").accepts(OURS)

    assert not known.exists()


def test_an_unknown_host_is_refused_with_yes_and_the_way_in_is_told(known: Path) -> None:
    """The message has the fingerprint and the command to run."""
    message = _refusal(HostKeys(_hop(known), "yes", "box"), OURS)

    assert OURS.get_fingerprint() in message
    assert f"ssh-keyscan -p 2222 box >> {known}" in message
    assert not known.exists()


@pytest.mark.parametrize("strict", ["yes", "accept-new"])
@pytest.mark.parametrize("shown", [OTHER, ECDSA], ids=["same type", "new type"])
def test_a_changed_key_is_refused_with_the_line_and_the_remedy(
    known: Path, strict: Strict, shown: asyncssh.SSHKey
) -> None:
    """Another key, of the same type or a new one, is refused; the message says what to remove."""
    _write(known, "# first\n" + _line("[box]:2222", OURS))

    message = _refusal(HostKeys(_hop(known), strict, "box"), shown)

    assert f"{known}:2" in message
    assert f"ssh-keygen -R '[box]:2222' -f {known}" in message
    assert known.read_text() == "# first\n" + _line("[box]:2222", OURS)


def test_with_no_everything_is_accepted_and_only_new_hosts_are_remembered(known: Path) -> None:
    """``no`` lets a changed key pass and does not write it."""
    assert HostKeys(_hop(known), "no", "box").accepts(OURS)
    assert HostKeys(_hop(known), "no", "box").accepts(OTHER)

    assert known.read_text() == _line("[box]:2222", OURS)


def test_a_key_of_the_hosts_default_port_is_enough(known: Path) -> None:
    """As in OpenSSH, an entry without a port counts where there is none with it."""
    _write(known, _line("box", OURS))

    assert HostKeys(_hop(known), "yes", "box").accepts(OURS)
    assert "it is not known" in _refusal(HostKeys(_hop(known), "yes", "box"), OTHER)


def test_the_default_port_is_written_without_brackets(known: Path) -> None:
    """Port 22 is written as ssh writes it."""
    HostKeys(_hop(known, port=22), "accept-new", "box").accepts(OURS)

    assert known.read_text() == _line("box", OURS)


def test_revoked_keys_are_found_for_a_host_with_a_port(known: Path) -> None:
    """``@revoked [host]:port`` counts also where no other key of the host is known."""
    _write(known, "@revoked " + _line("[box]:2222", OURS))

    keys = HostKeys(_hop(known), "no", "box")

    assert keys.revoked == [OURS]
    assert "@revoked" in str(keys.unverified("Host key is revoked"))


def test_hashed_names_and_patterns_are_understood(known: Path) -> None:
    """What ``HashKnownHosts`` writes, and wildcards, name the host too."""
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, b"192.168.0.61", "sha1").digest()
    hashed = f"|1|{b64encode(salt).decode()}|{b64encode(digest).decode()}"
    lines = _line(hashed, OURS) + _line("*.corp", OTHER)

    known_hosts = KnownHosts([("file", lines)])

    assert known_hosts.about("192.168.0.61")[0] == [OURS]
    assert known_hosts.about("a.corp")[0] == [OTHER]
    assert known_hosts.places("a.corp") == ["file:2"]


def test_known_types_are_asked_for_first_and_the_others_too(known: Path) -> None:
    """The host is asked for the key that we know, but may show another, to be refused for it."""
    _write(known, _line("[box]:2222", ECDSA))

    algorithms = HostKeys(_hop(known), "yes", "box").algorithms

    assert algorithms[:2] == ["ecdsa-sha2-nistp256", "ssh-ed25519"]
    assert "rsa-sha2-512" in algorithms


def test_what_cannot_be_written_is_refused_with_accept_new_only(known: Path) -> None:
    """A host that could not be remembered would be new, and trusted, for ever."""
    known.parent.write_text("a file, where the directory should be")

    message = _refusal(HostKeys(_hop(known), "accept-new", "box"), OURS)

    assert str(known) in message
    assert "worker.ssh_known_hosts" in message
    assert HostKeys(_hop(known), "no", "box").accepts(OURS)


def test_nothing_is_remembered_where_nothing_shall_be() -> None:
    """UserKnownHostsFile ``none`` and ``/dev/null`` accept new hosts each time."""
    for path in ("none", "/dev/null"):
        assert HostKeys(_hop(Path(path)), "accept-new", "box").accepts(OURS)


def test_many_who_meet_a_host_at_once_write_one_line(known: Path) -> None:
    """Concurrent first connections leave one line; all of them go on."""

    def meet(_: int) -> bool:
        return HostKeys(_hop(known), "accept-new", "box").accepts(OURS)

    with ThreadPoolExecutor(16) as pool:
        accepted = list(pool.map(meet, range(64)))

    assert all(accepted)
    assert known.read_text() == _line("[box]:2222", OURS)


def test_a_key_that_another_wrote_meanwhile_decides(known: Path) -> None:
    """Between our look and our writing another process may have met the host: its key counts."""
    keys = HostKeys(_hop(known), "accept-new", "box")
    same = HostKeys(_hop(known), "accept-new", "box")
    _write(known, _line("[box]:2222", OURS))

    assert same.accepts(OURS)
    assert f"{known}:1" in _refusal(keys, OTHER)

    assert known.read_text() == _line("[box]:2222", OURS)


def test_the_lock_is_waited_for(known: Path) -> None:
    """A line is written under the lock that other writers take."""

    @contextmanager
    def locked() -> Iterator[None]:
        known.parent.mkdir()
        fd = os.open(known, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
        os.close(fd)

    with ThreadPoolExecutor(1) as pool:
        with locked():
            accepting = pool.submit(HostKeys(_hop(known), "accept-new", "box").accepts, OURS)
            known.write_text(_line("[box]:2222", OTHER))
        assert accepting.result(10) is False

    assert known.read_text() == _line("[box]:2222", OTHER)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")
def test_ssh_keygen_finds_what_was_written(known: Path) -> None:
    """OpenSSH reads our lines, and its remedy removes them."""
    HostKeys(_hop(known), "accept-new", "box").accepts(OURS)

    found = subprocess.run(["ssh-keygen", "-F", "[box]:2222", "-f", known], check=False)
    subprocess.run(["ssh-keygen", "-R", "[box]:2222", "-f", known], check=True)

    assert found.returncode == 0
    assert known.read_text() == ""


def test_a_file_that_may_not_be_read_is_an_error(known: Path) -> None:
    """What cannot be read might have said no."""
    known.parent.mkdir()
    known.mkdir()

    with pytest.raises(HostError, match="Is a directory") as caught:
        HostKeys(_hop(known), "accept-new", "box")

    assert caught.value.trouble is HostTrouble.HOST_KEY
    assert str(known) in str(caught.value)


def test_an_error_says_which_hop_it_was(known: Path) -> None:
    """A jump host's key is told as the jump host's."""
    hop = Hop(
        name="jump",
        host="j",
        port=22,
        user="u",
        key_name="j",
        known_hosts=(str(known),),
        identity_files=(),
        is_target=False,
    )
    keys = HostKeys(hop, "yes", "box")

    assert not keys.accepts(OURS)

    assert isinstance(keys.refused, HostError)
    assert "jump host jump" in str(keys.refused)


def test_a_file_that_another_locks_for_long_is_not_waited_for(
    known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that waits is the one that tells every agent on every host that we live."""
    monkeypatch.setattr(known_hosts, "_LOCK_PATIENCE", 0.05)
    _write(known, "")
    with known.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        refusal = _refusal(HostKeys(_hop(known), "accept-new", "box"), OURS)

    assert "another process has locked it" in refusal
    assert known.read_text() == ""
