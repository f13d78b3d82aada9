"""A registry of images on loopback, and the image of the tests in it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.ports import free_port
from tests.transports.containers import IMAGE, engine_environ

_BOUND = 120.0  # seconds
_PROGRAM = shutil.which("docker-registry")
requires_registry = pytest.mark.skipif(
    _PROGRAM is None, reason="there is no docker-registry, which images are pulled from"
)


@contextmanager
def registry_running(place: Path) -> Iterator[tuple[str, Path]]:
    """Run a registry with its files in a directory.

    Yields the name of an image in it that podman has under no name, and the file by which podman
    speaks plain HTTP to the registry (CONTAINERS_REGISTRIES_CONF).
    """
    assert _PROGRAM is not None
    address = f"127.0.0.1:{free_port()}"
    config = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(place / "images")}},
        "http": {"addr": address},
    }
    (place / "registry.yml").write_text(json.dumps(config))
    trusted = place / "registries.conf"
    trusted.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
    name = f"{address}/team/tools:7"
    with (place / "registry.log").open("wb") as log:
        registry = subprocess.Popen(
            [_PROGRAM, "serve", str(place / "registry.yml")], stdout=log, stderr=log
        )
    try:
        _await(f"http://{address}/v2/", registry)
        podman("push", "--quiet", "--tls-verify=false", IMAGE, f"docker://{name}")
        yield name, trusted
    finally:
        registry.terminate()
        registry.wait(_BOUND)
        podman("image", "rm", "--ignore", "--force", name)


def podman(*words: str) -> None:
    """Have podman do something. Raises CalledProcessError."""
    subprocess.run(
        ["podman", *words], env=engine_environ(), check=True, capture_output=True, timeout=_BOUND
    )


def _await(url: str, registry: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _BOUND
    while True:
        try:
            with urlopen(url, timeout=_BOUND):
                return
        except OSError:
            assert registry.poll() is None, "the registry has ended"
            assert time.monotonic() < until, f"nothing answers at {url}"
            time.sleep(0.05)
