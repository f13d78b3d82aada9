"""The application at the root of a process of several workflows."""

from __future__ import annotations

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from sortie.telemetry import Publish
from sortie.web.access import Access
from sortie.web.app import answer_of_error, answer_of_refusal, openapi_operation
from sortie.web.dashboard.routes import static_routes
from sortie.web.drain import DrainSource, NoLeases
from sortie.web.drain_operations import drain_operations
from sortie.web.middleware import AccessMiddleware
from sortie.web.operations import Operation
from sortie.web.several.overview_page import OverviewPage
from sortie.web.several.source import SeveralSource, SeveralStateView
from sortie.web.sign_in import sign_in_operation, sign_in_pages
from sortie.web.view_operations import MetricsPage, StandingWords, standing_operations

_WORDS = StandingWords(
    lives="Whether the process lives, or should be restarted",
    ready="Whether all workflows that are not broken do their work now",
    is_ready="they do",
    is_not_ready="they do not, for these reasons",
    metrics="The metrics of all workflows, each with the label workflow",
    state="The workflows of the process, and how each stands",
    shown="the workflows",
)


class ServedProcess(Struct, frozen=True):
    """What the root serves: the workflows, and the metrics of all."""

    source: SeveralSource
    metrics: MetricsPage
    drains: DrainSource = NoLeases()


def create_root_app(served: ServedProcess, access: Access, publish: Publish) -> ASGIApp:
    """Make the application of all workflows together, behind the access rules."""
    page = OverviewPage(served.source)
    app = Starlette(
        routes=[
            *(operation.route() for operation in root_operations(served, access)),
            *sign_in_pages(access.sessions),
            Route("/", page.show, methods=["GET"]),
            *static_routes(),
        ],
        exception_handlers={HTTPException: answer_of_refusal, Exception: answer_of_error},
    )
    app.router.redirect_slashes = False
    return AccessMiddleware(app, access, served.source.secrets, publish)


def root_operations(served: ServedProcess, access: Access) -> list[Operation]:
    """Return the operations, in the order of the OpenAPI document."""
    source = served.source
    found = [
        *standing_operations(
            source.health, served.metrics, source.state, SeveralStateView, _WORDS, source.look
        ),
        *drain_operations(served.drains),
        *sign_in_operation(access.sessions),
    ]
    return [*found, openapi_operation(found)]
