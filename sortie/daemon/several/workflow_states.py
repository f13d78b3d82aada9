"""How the workflows of a process stand, one by one and all together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.lease_views import daemon_views, lease_view
from sortie.daemon.service_manager import ServiceStanding
from sortie.daemon.several.shared_slots import SharedSlots
from sortie.daemon.several.supervisor import WorkflowSupervisor
from sortie.daemon.wall_time import utc_now
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
        )

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
                ready=False,
                errors=supervisor.errors if status == "broken" else (),
                lease=lease,
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
        if not found and not reasons:
            reasons.append("no workflow works")
        return Health(
            ready=not reasons,
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
