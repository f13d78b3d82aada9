"""The keys to log in with: those of files that can be read without asking, and the agent's."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

import asyncssh
from msgspec import Struct, field

from sortie.transports.ssh.route import Hop


class Identities(Struct, kw_only=True):
    """Key pairs in the order in which they are offered, and what to say of them (no contents)."""

    pairs: list[asyncssh.SSHKeyPair] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


async def collect(hop: Hop, stack: AsyncExitStack) -> Identities:
    """Return a hop's keys: its files', then the agent's.

    The agent's are usable until the stack is closed. Missing files are ignored, as ssh does;
    encrypted ones are passed over, unless the agent has them.
    """
    found = Identities()
    wanted: list[bytes] = []
    for path in dict.fromkeys(hop.identity_files):
        _load(path, found, wanted)
    if hop.agent is None:
        return found
    try:
        agent = await asyncssh.connect_agent(hop.agent)
    except (OSError, asyncssh.Error) as exc:
        found.passed.append(f"the agent {hop.agent} ({getattr(exc, 'strerror', None) or exc})")
        return found
    stack.push_async_callback(_leave, agent)
    pairs = await _agent_keys(agent, found, hop.agent)
    own = {pair.public_data for pair in found.pairs}
    for pair in pairs:
        if pair.public_data in own or (hop.identities_only and pair.public_data not in wanted):
            continue
        found.pairs.append(pair)
        found.tried.append(f"the agent's {pair.get_comment() or 'key'}")
    return found


def _load(path: str, found: Identities, wanted: list[bytes]) -> None:
    """Add the key of a file, and note its public half, which may be all there is of it."""
    wanted.extend(_public(f"{path}.pub"))
    try:
        pairs: Sequence[asyncssh.SSHKeyPair] = asyncssh.load_keypairs(path)
    except (FileNotFoundError, NotADirectoryError):
        found.missing.append(path)
    except OSError as exc:
        found.passed.append(f"{path} ({exc.strerror})")
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as exc:
        if "assphrase" in str(exc):
            found.passed.append(f"{path} (encrypted; add it to the agent)")
        elif public_itself := _public(path):
            wanted.extend(public_itself)  # the agent may have the private half
        else:
            found.passed.append(f"{path} (not a private key that can be read)")
    else:
        found.pairs.extend(pairs)
        found.tried.append(path)
        wanted.extend(pair.public_data for pair in pairs)


def _public(path: str) -> list[bytes]:
    try:
        return [asyncssh.read_public_key(path).public_data]
    except (OSError, asyncssh.KeyImportError, ValueError):
        return []


async def _agent_keys(
    agent: asyncssh.SSHAgentClient, found: Identities, path: str
) -> Sequence[asyncssh.SSHKeyPair]:
    try:
        return await agent.get_keys()
    except (OSError, ValueError) as exc:
        found.passed.append(f"the agent {path} ({exc})")
        return ()


async def _leave(agent: asyncssh.SSHAgentClient) -> None:
    agent.close()
    await agent.wait_closed()
