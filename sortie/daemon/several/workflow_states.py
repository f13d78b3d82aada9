"""How the workflows of a process stand, one by one and all together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal

import trio

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.drain import ProcessDrain
from sortie.daemon.lease_views import daemon_views, lease_view
from sortie.daemon.service_manager import ServiceStanding
from sortie.daemon.several.relayed_state import RelayedState
from sortie.daemon.several.shared_slots import SharedSlots
from sortie.daemon.several.supervisor import WorkflowSupervisor
from sortie.daemon.wall_time import utc_now
from sortie.web.drain import DrainView
from sortie.web.health import OVERDUE_LIMIT, Health
from sortie.web.several.source import SeveralStateView, WorkflowStateView, WorkflowStatus


class WorkflowStates:
    """Tells how the workflows stand; ``known`` are the secrets of each by its name."""

    def __init__(
        self,
        supervisors: Sequence[WorkflowSupervisor],
        slots: SharedSlots,
        known: Mapping[str, Set[str]],
    ) -> None:
        self._supervisors = supervisors
        self._slots = slots
        self._known = known
        self.relayed: dict[str, RelayedState] = {}
        self.drain: ProcessDrain | None = None

    async def look(self) -> None:
        """Ask the leaders of workflows that are not led here how these stand."""
        led = self.views().keys()
        async with trio.open_nursery() as nursery:
            for name, relayed in self.relayed.items():
                if name not in led:
                    nursery.start_soon(relayed.look)

    def views(self) -> dict[str, DaemonView]:
        """Return those that work."""
        return {
            each.name: each.member.view
            for each in self._supervisors
            if each.member is not None and each.member.view is not None
        }

    def candidacies(self) -> dict[str, Candidacy]:
        """Return how those stand that have a lease, or want one."""
        return {each.name: each.candidacy for each in self._supervisors if each.candidacy}

    def secrets(self) -> Set[str]:
        """Return the secrets of all."""
        return frozenset().union(*self._known.values())

    def state(self) -> SeveralStateView:
        """Return how all stand."""
        return SeveralStateView(
            generated_at=utc_now(),
            slots=self._slots.total,
            used=self._slots.used,
            workflows=tuple(map(self._state, self._supervisors)),
            daemons=daemon_views(self.candidacies().values()),
            drain=self._drain(),
        )

    def _drain(self) -> Literal["draining", "drained"] | None:
        standing = None if self.drain is None else self.drain.standing()
        if isinstance(standing, DrainView) and standing.status in ("draining", "drained"):
            return "drained" if standing.status == "drained" else "draining"
        return None

    def _state(self, supervisor: WorkflowSupervisor) -> WorkflowStateView:
        name, view = supervisor.name, self.views().get(supervisor.name)
        lease = None if supervisor.candidacy is None else lease_view(supervisor.candidacy)
        path, url = os.path.abspath(supervisor.options.workflow), f"/workflows/{supervisor.name}/"
        if view is None:
            status: WorkflowStatus = (
                "starting" if supervisor.status == "working" else supervisor.status
            )
            return WorkflowStateView(
                name=name,
                path=path,
                url=url,
                status=status,
                errors=supervisor.errors if status == "broken" else (),
                lease=lease,
                **{"ready": False} | _of_leader(supervisor, self.relayed.get(name)),
            )
        state, health = view.overview(0), view.health()
        share = view.orchestrator.settings.share
        return WorkflowStateView(
            name=name,
            path=path,
            url=url,
            status=state.status,
            ready=health.ready,
            errors=state.workflow.errors,
            reasons=health.reasons,
            counts=state.counts,
            slots=state.slots,
            guaranteed=share.guaranteed,
            weight=share.weight,
            lease=lease,
        )

    def health(self) -> Health:
        """Return whether all that are not broken do their work; none working is not ready."""
        found = {name: view.health() for name, view in self.views().items()}
        reasons = [f"{n}: {reason}" for n, health in found.items() for reason in health.reasons]
        details = [f"{n}: {detail}" for n, health in found.items() for detail in health.details]
        for each in self._supervisors:
            if each.status == "starting":
                reasons.append(f"{each.name}: it is starting")
            elif each.status == "broken":
                details.append(f"{each.name} is broken: {'; '.join(each.errors)}")
            elif each.status == "standby" and each.candidacy is not None:
                leader, error = each.candidacy.leader or "no daemon", each.candidacy.error
                details.append(f"{each.name}: {leader} leads the workflow")
                reasons += [f"{each.name}: {error}"] if error else []
        stands_by = any(each.status == "standby" for each in self._supervisors)
        if not found and not reasons and not stands_by:
            reasons.append("no workflow works")
        return Health(
            ready=not reasons,
            standby=stands_by and not found,
            reasons=tuple(reasons),
            details=tuple(details),
            overdue=max((health.overdue for health in found.values()), default=0.0),
        )

    def standing(self) -> ServiceStanding | None:
        """Return the status line for a service manager; None before all have begun once."""
        if not all(each.settled.is_set() for each in self._supervisors):
            return None
        views, health = self.views(), self.health()
        counts = [view.overview(0).counts for view in views.values()]
        parts = [
            f"running {sum(c.running for c in counts)}, waiting {sum(c.waiting for c in counts)},"
            f" held {sum(c.held for c in counts)}, in {len(counts)} workflows"
        ]
        broken = [each.name for each in self._supervisors if each.status == "broken"]
        if broken:
            parts.append(f"broken: {', '.join(broken)}")
        if health.reasons:
            parts.append(f"not ready: {'; '.join(health.reasons)}")
        return ServiceStanding(live=health.overdue <= OVERDUE_LIMIT, status="; ".join(parts))


def _of_leader(supervisor: WorkflowSupervisor, relayed: RelayedState | None) -> dict[str, Any]:
    """Return what is known of a workflow that another daemon leads."""
    candidacy = supervisor.candidacy
    if supervisor.status != "standby" or candidacy is None:
        return {}
    found: dict[str, Any] = {"ready": candidacy.error is None}
    if candidacy.error is not None:
        found["reasons"] = (candidacy.error,)
    if relayed is not None and relayed.view is not None:
        found |= {"counts": relayed.view.counts, "slots": relayed.view.slots}
    return found
