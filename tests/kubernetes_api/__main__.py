"""Run a cluster of the tests by hand: ``python -m tests.kubernetes_api DIRECTORY [PORT]``.

``DIRECTORY/kubeconfig`` is for it, and its pods run on this machine until it is interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from tests.kubernetes_api.server import cluster_running


async def main(directory: Path, port: int | None) -> None:
    """Run until interrupted."""
    async with cluster_running(port) as api:
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig(), encoding="utf-8")
        sys.stdout.write(f"KUBECONFIG={kubeconfig} {api.url}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


try:
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
except* KeyboardInterrupt:
    pass
