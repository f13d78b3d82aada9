"""``sortie history --leaders``: which daemons have led a workflow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from sortie.cli.arguments import Source
from sortie.cli.format import utc
from sortie.cli.output import Format, Json, columns, emit, emit_json, note
from sortie.cli.parameters import WrongUsage
from sortie.model import SortieError
from sortie.model.numbers import took

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sortie.web.leases import LeadershipView

_COLUMNS = ("since", "for", "token", "leader", "ended")


def show_leaders(source: Source, limit: int, before: str | None, output: Format) -> None:
    """Print the leaderships, the newest first. Raises SortieError without a server."""
    from sortie.daemon.lease_views import leadership_view, past_leaderships
    from sortie.daemon.workflow_file import load_workflow

    if before is not None and not (before.isascii() and before.isdigit() and len(before) < 16):
        raise WrongUsage("--before needs a token, a number", parameter="--before")
    settings = load_workflow(source.options()).settings
    if settings.store.url is None:
        raise SortieError(
            "the workflow file has no store.url, so one daemon alone leads the workflow: there is"
            " no history of leaders"
        )
    token = None if before is None else int(before)
    found = [leadership_view(one) for one in past_leaderships(settings.store, limit, token)]
    if output is Format.JSON:
        from sortie.web.leases import LeadershipsView
        from sortie.web.state import to_json

        emit_json(cast("Json", json.loads(to_json(LeadershipsView(leaderships=tuple(found))))))
        return
    if not found:
        note("no daemon has led the workflow yet")
        return
    emit(_listing(found, columns()))
    if len(found) == limit:
        note(f"there may be more: --before {found[-1].token}")


def _listing(found: Sequence[LeadershipView], width: int) -> str:
    from sortie.cli.tables import Row, table

    rows = [
        Row(
            [
                utc(one.since),
                "" if one.until is None else took((one.until - one.since).total_seconds()),
                str(one.token),
                one.leader,
                one.ended_by or "leads",
            ]
        )
        for one in found
    ]
    return table(_COLUMNS, rows, width)
