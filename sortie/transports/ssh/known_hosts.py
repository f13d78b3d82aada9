"""Decides whether a host is the one we know: StrictHostKeyChecking ``yes | accept-new | no``,
and ``look``, which remembers nothing.

Rule 1: a revoked key is refused whatever the setting; a changed one unless it is ``no``.
Rule 2: what is accepted as new is in known_hosts before the connection is used, once, however
many processes meet the host at the same time; existing lines are never touched.
Rule 3: one unreadable line takes no other line with it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterable, Sequence

import asyncssh

from sortie.model import HostError, HostTrouble
from sortie.transports.ssh.route import Hop
from sortie.transports.ssh.settings import Strictness

# OpenSSH's order of preference, without security keys; asyncssh's own puts RSA first.
_PLAIN_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_CERTIFIED = tuple(f"{name}-cert-v01@openssh.com" for name in _PLAIN_ALGORITHMS)
_Keys = Sequence[asyncssh.SSHKey]
_LOCK_PATIENCE = 2.0


class KnownHosts:
    """What files of known hosts say, as of now; missing ones say nothing."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._lines: list[tuple[str, asyncssh.SSHKnownHosts]] = []
        for path, text in texts:
            for number, line in enumerate(text.splitlines(), 1):
                known = asyncssh.SSHKnownHosts()
                try:
                    known.load(line)
                except (ValueError, asyncssh.KeyImportError):
                    continue
                self._lines.append((f"{path}:{number}", known))

    @classmethod
    def read(cls, paths: Iterable[str]) -> KnownHosts:
        """Read the files; raises OSError for one that is there and cannot be read."""
        texts = []
        for path in paths:
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    texts.append((path, file.read()))
            except (FileNotFoundError, NotADirectoryError):
                continue
        return cls(texts)

    def about(self, name: str) -> tuple[_Keys, _Keys, _Keys]:
        """Return the keys, authorities' keys and revoked keys of a host."""
        keys: list[asyncssh.SSHKey] = []
        authorities: list[asyncssh.SSHKey] = []
        revoked: list[asyncssh.SSHKey] = []
        for _, known in self._lines:
            found = known.match(name, "", None)
            keys.extend(found[0])
            authorities.extend(found[1])
            revoked.extend(found[2])
        return keys, authorities, revoked

    def places(self, name: str) -> list[str]:
        """Return ``file:line`` of every key of a host."""
        return [place for place, known in self._lines if known.match(name, "", None)[0]]


class HostKeys:
    """The check of one hop's key in one dial; ``refused`` says why it was not accepted.

    Raises HostError where a file of known hosts cannot be read.
    """

    def __init__(self, hop: Hop, strict: Strictness, host: str) -> None:
        self.refused: HostError | None = None
        self._hop = hop
        self._strict = strict
        self._host = host
        self._files = tuple(path for path in hop.known_hosts if path != "none")
        try:
            self._known = KnownHosts.read(self._files)
        except OSError as exc:
            raise self._error(
                f"{exc.filename} cannot be read ({exc.strerror})",
                "",
                "make it readable or name another under worker.ssh_known_hosts",
            ) from exc
        self._keys, self._authorities, self._revoked = self._known.about(hop.key_name)

    @property
    def authorities(self) -> _Keys:
        """The keys whose certificates are accepted."""
        return self._authorities

    @property
    def revoked(self) -> _Keys:
        """The keys that are never accepted."""
        return self._revoked

    @property
    def algorithms(self) -> list[str]:
        """What is asked of the host: the types we know first, but all of them.

        With only the known types a host that changed its key would hang up, without a reason.
        """
        known = {name.decode() for key in self._keys for name in key.sig_algorithms}
        plain = sorted(_PLAIN_ALGORITHMS, key=lambda name: name not in known)
        return [*(_CERTIFIED if self._authorities else ()), *plain]

    def accepts(self, key: asyncssh.SSHKey) -> bool:
        """Decide on the key that the host has shown; may write it to known_hosts."""
        self.refused = self._flaw(key)
        return self.refused is None

    def unverified(self, reason: str) -> HostError:
        """Return why the host is not trusted; ``reason`` is asyncssh's, where that decided."""
        if self.refused is not None:
            return self.refused
        if "revoked" in reason:
            return self._error("its key is marked @revoked", "", "the host needs a new key")
        return self._error(f"its key was refused ({reason})", "", self._remedy())

    def _flaw(self, key: asyncssh.SSHKey) -> HostError | None:
        shown = key.get_fingerprint()
        if key in self._keys or key in self._without_port():
            return None
        if self._strict == "no":
            if not self._keys:
                self._remember(key)  # whether that works does not matter
            return None
        if self._keys:
            return self._changed(shown, self._known)
        if self._strict == "yes":
            return self._error("it is not known", shown, self._introduction())
        if self._strict == "look":
            return None
        return self._remember(key)

    def _without_port(self) -> _Keys:
        """Return the keys of the host's default port, where nothing is known of this port."""
        return [] if self._keys else self._known.about(self._hop.host.lower())[0]

    def _remember(self, key: asyncssh.SSHKey) -> HostError | None:
        """Append the key to known_hosts, unless another process did so meanwhile."""
        if not self._files:
            return None  # known_hosts is set to none: nothing is to be remembered
        path = self._files[0]
        try:
            now_known = _append(path, self._hop.key_name, key)
        except OSError as exc:
            return self._error(
                f"it is new and could not be written to {path} ({exc.strerror})",
                key.get_fingerprint(),
                "make that file writable or name another under worker.ssh_known_hosts",
            )
        if now_known is None or key in now_known.about(self._hop.key_name)[0]:
            return None
        return self._changed(key.get_fingerprint(), now_known)

    def _changed(self, shown: str, known: KnownHosts) -> HostError:
        places = ", ".join(known.places(self._hop.key_name))
        return self._error(
            f"it does not show the key that stands in {places}", shown, self._remedy()
        )

    def _remedy(self) -> str:
        name = shlex.quote(self._hop.key_name)
        files = dict.fromkeys(p.rpartition(":")[0] for p in self._known.places(self._hop.key_name))
        commands = " and ".join(f"ssh-keygen -R {name} -f {shlex.quote(p)}" for p in files)
        return (
            "either another machine answers there, or the host was set up anew;"
            f" if you are sure of the latter: {commands or f'ssh-keygen -R {name}'}"
        )

    def _introduction(self) -> str:
        files = self._files or ("~/.ssh/known_hosts",)
        port = f"-p {self._hop.port} " if self._hop.port != 22 else ""
        return (
            "compare that fingerprint with the host's own, then run:"
            f" ssh-keyscan {port}{self._hop.host} >> {shlex.quote(files[0])};"
            " or set worker.ssh_strict_host_key_checking to accept-new"
        )

    def _error(self, flaw: str, shown: str, advice: str) -> HostError:
        hop = self._hop
        where = f"host {self._host}" if hop.is_target else f"the jump host {hop.name}"
        fingerprint = f" (it shows {shown})" if shown else ""
        return HostError(
            HostTrouble.HOST_KEY,
            f"could not trust {where} at {hop.address}: {flaw}{fingerprint}; {advice}",
        )


def _lock(fd: int) -> None:
    """Lock a file until it is closed. Raises OSError where another has it for long.

    asyncssh wants its answer at once, and while we wait no agent on any host hears of us.
    """
    until = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise BlockingIOError(errno.EAGAIN, "another process has locked it") from None
        time.sleep(0.01)


def _append(path: str, name: str, key: asyncssh.SSHKey) -> KnownHosts | None:
    """Add a line unless a key of the host stands there; return what then stands in the file.

    None: it is no regular file (such as /dev/null) and remembers nothing.
    """
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "r+b", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        _lock(fd)
        content = file.read() or b""
        known = KnownHosts([(path, content.decode("utf-8", "surrogateescape"))])
        if known.about(name)[0]:
            return known
        kind, encoded = key.export_public_key("openssh").split()[:2]
        line = b"%s %s %s\n" % (name.encode(), kind, encoded)
        if content and not content.endswith(b"\n"):
            line = b"\n" + line
        file.write(line)  # one write, at the end of the file
        os.fsync(fd)
        return KnownHosts([(path, (content + line).decode("utf-8", "surrogateescape"))])
