"""A real sshd on loopback, for tests: a host of its own, with keys, home and port of its own.

It logs in the user who runs the tests. Every process that it starts for a login carries
``SORTIE_TEST_SSHD=<name>`` and has ``home`` as its HOME; none may outlive the host's block.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import asyncssh
import psutil
import pytest
import trio

from sortie.transports.ssh.settings import SshSettings
from tests.ports import free_port

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))
USER = pwd.getpwuid(os.getuid()).pw_name
_MARK = "SORTIE_TEST_SSHD"
_RUNTIME = Path("/run/sshd")
_PATIENCE = 60.0


def _missing() -> str | None:
    """Say why no sshd can be run here, or None."""
    if SSHD is None:
        return "there is no sshd"
    if os.getuid() == 0:
        with suppress(OSError):
            _RUNTIME.mkdir(mode=0o755, exist_ok=True)
        if not _RUNTIME.is_dir():
            return f"sshd needs {_RUNTIME}, which could not be made"
    return None


MISSING = _missing()
requires_sshd = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A client's side: its key, its known_hosts and its ssh_config, shared by several hosts."""

    directory: Path
    key: Path
    known_hosts: Path
    config: Path

    @classmethod
    def make(cls, directory: Path) -> Keys:
        """Make a new client in a directory: nothing known, nothing configured."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys = cls(
            directory=directory,
            key=new_key(directory / "id_ed25519"),
            known_hosts=directory / "known_hosts",
            config=directory / "config",
        )
        # The machine's own files must play no part, in particular not /root/.ssh.
        keys.config.write_text("Host *\n  GlobalKnownHostsFile /dev/null\n")
        return keys

    @property
    def settings(self) -> SshSettings:
        """Settings that use nothing but this client's files."""
        return SshSettings(
            strict="accept-new",
            config=str(self.config),
            known_hosts=str(self.known_hosts),
            identity_files=(str(self.key),),
            search_path=os.environ["PATH"],
        )

    def configure(self, *lines: str) -> None:
        """Put lines before what the ssh_config holds (the first value of a key wins)."""
        self.config.write_text("\n".join(lines) + "\n" + self.config.read_text())


def new_key(path: Path, kind: str = "ssh-ed25519") -> Path:
    """Write a new private key, mode 0600, and its public half beside it."""
    key = asyncssh.generate_private_key(kind)
    path.touch(mode=0o600)
    key.write_private_key(str(path))
    key.write_public_key(f"{path}.pub")
    return path


def encrypted_copy(key: Path, path: Path) -> Path:
    """Write a key once more, encrypted, alone and mode 0600."""
    path.touch(mode=0o600)
    path.write_bytes(key.read_bytes())
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "passphrase", "-f", path],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    return path


class Sshd:
    """One host. ``options`` are lines of sshd_config that win over ours, such as MaxSessions."""

    def __init__(
        self, directory: Path, keys: Keys, options: Mapping[str, str | int] | None = None
    ) -> None:
        self.name = str(uuid.uuid4())
        self.directory = directory
        self.keys = keys
        self.home = directory / "home"
        self.home.mkdir(mode=0o700, parents=True)
        self.host_key = new_key(directory / "host_key")
        self.authorized_keys = directory / "authorized_keys"
        self.authorized_keys.write_bytes(Path(f"{keys.key}.pub").read_bytes())
        self.options = dict(options or {})
        self.port = free_port()
        self.log: list[str] = []
        self._news = threading.Condition()
        self._listener: psutil.Popen | None = None
        self._reader: threading.Thread | None = None
        self._own: set[psutil.Process] = set()  # every sshd process that was seen

    @property
    def host(self) -> str:
        """The host as it would stand under ``worker.ssh_hosts``."""
        return f"127.0.0.1:{self.port}"

    @property
    def settings(self) -> SshSettings:
        """The client's settings."""
        return self.keys.settings

    def alias(self, name: str, *lines: str) -> str:
        """Give the host a name in the client's ssh_config, with further lines; return the name."""
        self.keys.configure(
            f"Host {name}",
            "  HostName 127.0.0.1",
            f"  Port {self.port}",
            *(f"  {x}" for x in lines),
        )
        return name

    def know(self, strict: bool = True) -> SshSettings:
        """Write this host's key to the client's known_hosts, and return strict settings."""
        public = Path(f"{self.host_key}.pub").read_text().split()[:2]
        with self.keys.known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{self.port} {' '.join(public)}\n")
        return replace(self.settings, strict="yes" if strict else "accept-new")

    def start(self) -> None:
        """Start to listen, on the same port each time; return when connections are accepted."""
        assert self._listener is None
        self._write_config()
        for _ in range(3):
            already = len(self.log)
            self._listener = psutil.Popen(
                [str(SSHD), "-D", "-e", "-f", str(self.directory / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={"PATH": os.environ["PATH"]},
            )
            self._own.add(psutil.Process(self._listener.pid))
            self._reader = threading.Thread(
                target=self._read_log, args=(self._listener,), daemon=True
            )
            self._reader.start()
            if self._heard("Server listening", already):
                return
            self.stop()
            self.port = free_port()
            self._write_config()
        raise AssertionError(f"sshd did not start: {self.log}")

    def kill_links(self) -> None:
        """End every connection at once, as a crash of the host's sshd does; go on listening."""
        for process in self.link_processes():
            _signal(process, signal.SIGKILL)

    def link_processes(self) -> list[psutil.Process]:
        """Return the processes that carry connections."""
        listener = None if self._listener is None else self._listener.pid
        return [process for process in self._sshds() if process.pid != listener]

    def stop_listening(self) -> None:
        """End the listener alone: the links that are there stay, new ones are refused."""
        self._sshds()
        listener, self._listener = self._listener, None
        assert listener is not None
        listener.kill()
        listener.wait(_PATIENCE)

    def crash(self) -> None:
        """SIGKILL the listener and every connection. ``start`` comes back on the same port."""
        self._stop(signal.SIGKILL)

    def stop(self) -> None:
        """End every sshd process of this host; what logins have started is left alone."""
        self._stop(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop every sshd process (SIGSTOP): the links stay open and nothing answers."""
        for process in self._sshds():
            _signal(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Undo ``freeze``."""
        for process in self._sshds():
            _signal(process, signal.SIGCONT)

    def links(self) -> int:
        """Return how many connections are open on the host's side."""
        listener = self._listener
        if listener is None:
            return 0
        return len(psutil.Process(listener.pid).children())

    def processes(self) -> set[psutil.Process]:
        """Return the sshd processes of this host."""
        return self._sshds()

    def running(self) -> list[str]:
        """Return what runs on this host because of a login, without sshd itself."""
        found = []
        for process in self._logged_in():
            with suppress(psutil.Error, OSError):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {' '.join(process.cmdline())}")
        return found

    def close(self) -> list[str]:
        """End all there is, what logins have started too; return what of that would not end.

        The links are ended first, so that what watches its lease has a moment to see that.
        """
        self.stop()
        deadline = time.monotonic() + _PATIENCE
        while (left := self.running()) and time.monotonic() < deadline:
            time.sleep(0.01)
        for process in self._logged_in():
            _signal(process, signal.SIGKILL)
        self._stop(signal.SIGKILL)
        return left

    def _write_config(self) -> None:
        lines = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.host_key,
            "AuthorizedKeysFile": self.authorized_keys,
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "UseDNS": "no",
            "PrintMotd": "no",
            "PrintLastLog": "no",
            "LogLevel": "VERBOSE",
            "SetEnv": f"HOME={self.home} {_MARK}={self.name}",
        }
        written = {**{k: v for k, v in lines.items() if k not in self.options}, **self.options}
        text = "".join(f"{key} {value}\n" for key, value in written.items())
        (self.directory / "sshd_config").write_text(text)

    def _read_log(self, listener: psutil.Popen) -> None:
        with listener.stderr as pipe:
            for line in pipe:
                with self._news:
                    self.log.append(line.decode(errors="replace").rstrip())
                    self._news.notify_all()
        with self._news:
            self.log.append("sshd ended")
            self._news.notify_all()

    def _heard(self, words: str, since: int) -> bool:
        def told() -> bool:
            return any(words in line or line == "sshd ended" for line in self.log[since:])

        with self._news:
            assert self._news.wait_for(told, _PATIENCE), f"sshd said nothing of {words!r}"
            return any(words in line for line in self.log[since:])

    def _sshds(self) -> set[psutil.Process]:
        if self._listener is not None:
            with suppress(psutil.NoSuchProcess):
                listener = psutil.Process(self._listener.pid)
                for process in listener.children(recursive=True):
                    with suppress(psutil.Error):
                        if process.name() == "sshd":
                            self._own.add(process)
        self._own = {process for process in self._own if process.is_running()}
        return self._own

    def _stop(self, how: signal.Signals) -> None:
        processes = self._sshds()  # before the listener ends, or its children are not found
        listener, self._listener = self._listener, None
        for process in processes:
            is_listener = listener is not None and process.pid == listener.pid
            _signal(process, how if is_listener else signal.SIGKILL)
        if listener is not None:
            listener.wait(_PATIENCE)
        for process in processes:
            _await_end(process)
        self._own.clear()
        if self._reader is not None:  # it ends with the last process that holds the pipe
            self._reader.join(_PATIENCE)

    def _logged_in(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(_MARK) == self.name:
                    yield process


@contextmanager
def sshd_running(
    directory: Path, keys: Keys, options: Mapping[str, str | int] | None = None
) -> Iterator[Sshd]:
    """Run a host while the block lasts; nothing that it started may be left at the end."""
    host = Sshd(directory, keys, options)
    host.start()
    try:
        yield host
    except BaseException:
        host.close()
        raise
    left = host.close()
    assert left == [], f"still running on the host: {left}"


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _await_end(process: psutil.Process) -> None:
    """Wait until a process runs no more; where it has become our child, reap it."""
    deadline = time.monotonic() + _PATIENCE
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE or process.ppid() == os.getpid():
            assert time.monotonic() < deadline, f"{process} does not end"
            with suppress(psutil.TimeoutExpired):
                process.wait(0.01)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something outside this process; it has to come within a minute."""
    with trio.fail_after(_PATIENCE):
        while not condition():
            await trio.sleep(0.01)
