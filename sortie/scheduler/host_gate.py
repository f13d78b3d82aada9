"""The gate of hosts: which of them may run an issue, and why none may."""

from __future__ import annotations

from sortie.model import Issue
from sortie.scheduler.gate_view import View
from sortie.scheduler.hosts import HOST_WAIT_LIMIT
from sortie.scheduler.state import SchedulerState


def host_slot(issue: Issue, view: View) -> str | None:
    """Say why no host may run one more agent for an issue, None where one may."""
    hosts = eligible_hosts(issue, view.state)
    account = view.state.policy_for(issue).account
    closed_for = {host: _host_closed(host, account, view) for host in hosts}
    if any(reason is None for reason in closed_for.values()):
        return None
    reasons = ", ".join(f"{host} {reason}" for host, reason in closed_for.items())
    elsewhere = (
        "" if hosts == view.state.policy_for(issue).hosts else ", and its workspace is there"
    )
    if elsewhere and any(view.state.hosts.of(host, account) for host in hosts):
        elsewhere += f"; after {HOST_WAIT_LIMIT / 60:.0f} minutes of trouble it goes elsewhere"
    return f"no host is free ({reasons}{elsewhere})"


def free_host(issue: Issue, view: View) -> str | None:
    """Return the least loaded host that may run one more agent for an issue, None if none may."""
    account = view.state.policy_for(issue).account
    hosts = eligible_hosts(issue, view.state)
    free = [host for host in hosts if _host_closed(host, account, view) is None]
    return min(free, key=lambda host: view.load.by_host.get(host, 0), default=None)


def eligible_hosts(issue: Issue, state: SchedulerState) -> tuple[str, ...]:
    """Return the hosts that an issue may run on: those that have its workspace, if there are any.

    A host in trouble does not count as one where it has been so for longer than it is waited for,
    where the agent's program is missing, or where nothing has run in the workspace.
    """
    homes = {known.host for known in state.workspaces.of(issue.id)}
    hosts = state.policy_for(issue).hosts
    awaited = (host for host in hosts if host in homes)
    return tuple(host for host in awaited if _is_awaited(host, issue, state)) or hosts


def _is_awaited(host: str, issue: Issue, state: SchedulerState) -> bool:
    account = state.policy_for(issue).account
    trouble = state.hosts.of(host, account)
    if trouble is None:
        return True
    blank = state.workspaces.all_blank(issue.id, host)
    return not (trouble.missed or account in trouble.lacks or blank)


def _host_closed(host: str, account: str, view: View) -> str | None:
    limit, load = view.state.policy.max_per_host, view.load.by_host.get(host, 0)
    if (trouble := view.state.hosts.of(host, account)) is not None:
        if trouble.backing_off:
            return "rests after trouble"
        others = 0 if trouble.unwell else view.runs_of_others(host, account)
        if load > others:
            return "is being tried again after trouble"
    if (full := view.state.space.host_full(host, view.state.policy.space)) is not None:
        return full
    if limit is not None and load >= limit:
        return f"has {load} of {limit} runs"
    if view.grant is not None and load >= (share := view.grant.on(host)):
        return f"has {load} runs of this workflow, whose share there is {share}"
    return None


def host_troubles(issue: Issue, state: SchedulerState) -> str:
    """Say what keeps an issue's hosts from being used, "" where it is no trouble."""
    account = state.policy_for(issue).account
    troubled = {host: state.hosts.of(host, account) for host in eligible_hosts(issue, state)}
    troubles = (f"{host}: {trouble.message}" for host, trouble in troubled.items() if trouble)
    return "; ".join(troubles)
