"""How a measure reaches a host on loopback by the ``ssh`` program."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.transports.ssh.settings import SshSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A host on loopback, and how it is reached; its key is in ``settings.known_hosts``."""

    port: int
    settings: SshSettings
    place: str  # a directory


def ssh_command(target: Target, master: str | None = None) -> list[str]:
    """Return the arguments of OpenSSH for the host, with the keys that we use ourselves."""
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "IdentityFile": target.settings.identity_files[0],
        "UserKnownHostsFile": target.settings.known_hosts,
        "StrictHostKeyChecking": "yes",
        "ControlPath": master or "none",
        "Port": target.port,
    }
    given = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return ["ssh", "-F", str(target.settings.config), *given, "127.0.0.1"]
