"""What is shown of the room for runs: of hosts, and of states with a limit."""

from __future__ import annotations

from sortie.daemon.wall_time import wall_time
from sortie.model import LOCAL
from sortie.scheduler import Snapshot
from sortie.web.state import HostView, SlotsView


def host_views(snapshot: Snapshot) -> tuple[HostView, ...]:
    """Return the remote hosts, with their troubles."""
    return tuple(_host(host, snapshot) for host in snapshot.policy.hosts if host != LOCAL)


def _host(host: str, snapshot: Snapshot) -> HostView:
    trouble, policy = snapshot.troubled.get(host), snapshot.policy
    most = policy.max_concurrent_agents if policy.max_per_host is None else policy.max_per_host
    return HostView(
        host=host,
        up=trouble is None,
        used=snapshot.by_host.get(host, 0),
        slots=most,
        since=None if trouble is None else wall_time(trouble.since),
        rests_until=None if trouble is None else wall_time(trouble.until),
        reason=None if trouble is None else trouble.message,
    )


def host_sentences(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a sentence for each host in trouble: whether it rests, and why."""
    return tuple(
        f"host {host} {'rests' if trouble.resting else 'is tried again'}: {trouble.message}"
        for host, trouble in snapshot.troubled.items()
    )


def slots_view(snapshot: Snapshot) -> SlotsView:
    """Return what room there is for runs."""
    policy = snapshot.policy
    by_state = {
        state: max(0, limit - snapshot.by_state.get(state, 0))
        for state, limit in policy.max_by_state.items()
    }
    by_host: dict[str, int] = {}
    if policy.max_per_host is not None:
        by_host = {host: snapshot.free_on(host) for host in policy.hosts}
    return SlotsView(
        total=policy.max_concurrent_agents,
        free=snapshot.free,
        by_state=by_state,
        by_host=by_host,
    )
