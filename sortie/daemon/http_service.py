"""The HTTP server of a daemon, and the file by which commands on this machine find it."""

from __future__ import annotations

import trio

from sortie.config import Settings
from sortie.daemon.endpoint_file import EndpointFile, endpoint_of_this_process
from sortie.resources import Shortage, run_in_thread
from sortie.telemetry import Publish, facts
from sortie.web import Access, Controls, Endpoint, Sources, create_app, listen, serve
from sortie.workflow import Workflow


async def start_http_server(
    services: trio.Nursery,
    settings: Settings,
    token: str,
    answers: tuple[Sources, Controls],
    publish: Publish,
) -> str | None:
    """Serve, and return the address for commands on this machine; None: no server is wanted."""
    server = settings.server
    if server.port == 0:
        return None
    listener = await listen(
        Endpoint(
            host=server.host,
            port=server.port,
            asked=server.port_given,
            token_given=server.auth_token is not None,
        )
    )
    access = Access(host=server.host, loopback=listener.loopback, token=token)
    app = create_app(*answers, access, publish)
    await services.start(serve, app, listener, publish)
    return listener.local_url


async def write_endpoint_file(
    workflow: Workflow, url: str | None, token: str, publish: Publish
) -> EndpointFile:
    """Tell commands where this daemon is; without that it works all the same."""
    endpoint = endpoint_of_this_process(url=url, token=token, workflow=str(workflow.path))
    endpoint_file = EndpointFile(workflow.settings.db_path, endpoint)
    try:
        await run_in_thread(endpoint_file.write)
    except (OSError, Shortage) as exc:
        error = getattr(exc, "strerror", None) or str(exc)
        publish(facts.ControlUnavailable(path=endpoint_file.path, error=error))
    return endpoint_file
