"""The operations by which this process hands its workflows over to other daemons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from starlette.requests import Request
from starlette.responses import Response

from sortie.web.operations import JSON, DescribedAnswer, Operation
from sortie.web.responses import error_response
from sortie.web.state import to_json

DrainStatus = Literal["leading", "standby", "draining", "drained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainView:
    """How this process stands among the daemons of its database: it ``leads`` workflows, in which
    ``running`` runs are under way. ``alone`` are those of them that no other daemon would lead."""

    daemon: str
    status: DrainStatus
    leads: tuple[str, ...]
    running: int
    alone: tuple[str, ...] = ()


class DrainSource(Protocol):
    """A process that can be drained; a sentence instead of a view says why it cannot."""

    def standing(self) -> DrainView | str:
        """Return how the process stands."""
        ...

    async def drain(self, *, draining: bool) -> DrainView | str | None:
        """Lead nothing any more, or lead again; None: it is not on record yet."""
        ...


class NoLeases:
    """A process whose databases are files, which is led by nothing else."""

    def standing(self) -> DrainView | str:
        """See DrainSource."""
        return (
            "no other daemon can take the workflows of this process over, as their databases are"
            " files: store.url is not set; stop the daemon instead"
        )

    async def drain(self, *, draining: bool) -> DrainView | str | None:  # noqa: ARG002
        """See DrainSource."""
        return self.standing()


def drain_operations(source: DrainSource) -> list[Operation]:
    """Return the operations. They are those of the process that is asked, whatever it leads."""

    async def show(_request: Request) -> Response:
        return _answer(source.standing())

    async def drain(_request: Request) -> Response:
        return _answer(await source.drain(draining=True))

    async def lead_again(_request: Request) -> Response:
        return _answer(await source.drain(draining=False))

    answers = {200: DescribedAnswer(about="how the process stands", body=DrainView)}
    refused = {409: "the process has no leases: store.url is not set"}
    later = {**refused, 503: "it is not on record yet, and takes effect once it is"}
    path = "/api/v1/drain"
    return [
        Operation(
            method="GET",
            path=path,
            about="Whether this process is being drained, and what it leads",
            endpoint=show,
            answers=answers,
            failures=refused,
        ),
        Operation(
            method="POST",
            path=path,
            about="Hand all workflows of this process over once their runs have ended",
            endpoint=drain,
            answers=answers,
            failures=later,
        ),
        Operation(
            method="POST",
            path=f"{path}/cancel",
            about="Let this process lead workflows again",
            endpoint=lead_again,
            answers=answers,
            failures=later,
        ),
    ]


def _answer(found: DrainView | str | None) -> Response:
    if found is None:
        return error_response(
            503, "the database has not taken it yet; it takes effect once the database has"
        )
    if isinstance(found, str):
        return error_response(409, found)
    return Response(to_json(found), media_type=JSON)
