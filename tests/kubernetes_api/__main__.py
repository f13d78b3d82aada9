"""Run a cluster of the tests by hand: ``python -m tests.kubernetes_api DIRECTORY [PORT | real]``.

``DIRECTORY/kubeconfig`` is for it, and its pods run on this machine until it is interrupted. With
``real`` it is a namespace of a real API server, and the kubeconfig is that of the daemon's account.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import trio

from tests.kubernetes_api.api_server import api_server_running, missing
from tests.kubernetes_api.real_cluster import RealApi, namespace_of
from tests.kubernetes_api.server import Api, cluster_running


async def main(directory: Path, which: str) -> None:
    """Run until interrupted."""
    async with AsyncExitStack() as stack:
        api: Api | RealApi
        if which == "real":
            server = stack.enter_context(api_server_running(directory))
            api = await stack.enter_async_context(namespace_of(server))
        else:
            port = int(which) if which else None
            api = await stack.enter_async_context(cluster_running(port))
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig(), encoding="utf-8")
        sys.stdout.write(f"KUBECONFIG={kubeconfig} {api.url}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


chosen = sys.argv[2] if len(sys.argv) > 2 else ""
if chosen == "real" and (why := missing()):
    sys.exit(why)
try:
    trio.run(main, Path(sys.argv[1]), chosen)
except* KeyboardInterrupt:
    pass
