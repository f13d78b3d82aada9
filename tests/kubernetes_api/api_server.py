"""A real API server with its etcd and the port of a node, as ``.ci/kubernetes`` has built them."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.ports import free_port

HERE = Path(__file__).parent
ETCD = shutil.which("etcd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))
ADMIN = "token-of-an-administrator"
_PATIENCE = 240.0


@cache
def programs() -> Path | None:
    """Return the folder with kube-apiserver and kubernetes-node; None where they are not built."""
    script = HERE.parent.parent / ".ci/kubernetes"
    if not script.exists():
        return None
    folder = Path(subprocess.check_output([script, "--where"], text=True).strip())
    names = ("kube-apiserver", "kubernetes-node")
    return folder if all(os.access(folder / name, os.X_OK) for name in names) else None


def missing() -> str | None:
    """Say why there can be no real API server here, or None."""
    if ETCD is None:
        return "there is no etcd"
    return None if programs() else "no API server of Kubernetes was built: .ci/kubernetes does it"


@dataclass
class ApiServer:
    """The processes of a control plane, and the port of its only node."""

    directory: Path
    port: int = field(default_factory=free_port)
    node_port: int = field(default_factory=free_port)
    _etcd_ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate that vouches for it."""
        return self.directory / "certificates/apiserver.crt"

    @property
    def pods(self) -> Path:
        """What the node is told of pods that run."""
        return self.directory / "node"

    @property
    def audit(self) -> Path:
        """A line for each request of an account."""
        return self.directory / "audit.log"

    def start(self) -> None:
        """Start all of it, and wait until it is ready."""
        self.pods.mkdir()
        self._write_secrets()
        client, peer = (f"http://127.0.0.1:{port}" for port in self._etcd_ports)
        self._start(
            "etcd",
            str(ETCD),
            f"--data-dir={self.directory}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )
        folder = programs()
        assert folder is not None
        self._start("node", str(folder / "kubernetes-node"), str(self.pods), str(self.node_port))
        self.start_api()

    def start_api(self) -> None:
        """Start the API server itself, and wait until it is ready."""
        folder = programs()
        assert folder is not None
        self._start(
            "api",
            str(folder / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_ports[0]}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.directory}/certificates",
            f"--token-auth-file={self.directory}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self.directory}/accounts.pem",
            f"--service-account-key-file={self.directory}/accounts.pem",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={self.directory}/audit.yaml",
            f"--audit-log-path={self.audit}",
            "--profiling=false",
        )
        self._await_ready()

    def stop_api(self) -> None:
        """Kill the API server; etcd, the node and what runs in pods go on."""
        self._end("api", signal.SIGKILL)

    def cut_streams(self) -> None:
        """Have the node cut all streams of programs; the programs go on."""
        self._running["node"].send_signal(signal.SIGUSR1)

    @property
    def node(self) -> int:
        """The pid of the node's program."""
        return self._running["node"].pid

    def stop(self) -> None:
        """End all of it."""
        for name in list(self._running):
            self._end(name, signal.SIGKILL)

    def trust(self) -> ssl.SSLContext:
        """Return what trusts it."""
        return ssl.create_default_context(cafile=str(self.authority))

    def client(self, token: str = ADMIN) -> httpx.Client:
        """Return a client, to be closed."""
        return httpx.Client(
            base_url=self.url,
            verify=self.trust(),
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )

    def _start(self, name: str, *argv: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _end(self, name: str, number: int) -> None:
        process = self._running.pop(name)
        process.send_signal(number)
        process.wait()

    def _await_ready(self) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if self._running["api"].poll() is not None:
                break
            with suppress(httpx.HTTPError, OSError), self.client() as client:
                if client.get("/readyz").status_code == 200:
                    return
            time.sleep(0.1)
        said = (self.directory / "api.log").read_text(errors="replace")[-3000:]
        raise AssertionError(f"the API server is not ready:\n{said}")

    def _write_secrets(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self.directory / "accounts.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        (self.directory / "tokens.csv").write_text(f"{ADMIN},admin,1,system:masters\n")
        (self.directory / "audit.yaml").write_text(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
            "  - {level: Metadata, userGroups: ['system:serviceaccounts']}\n  - {level: None}\n"
        )


@contextmanager
def api_server_running(directory: Path) -> Iterator[ApiServer]:
    """Have a control plane while the block lasts. Skips the test where there can be none."""
    if why := missing():
        pytest.skip(why)
    server = ApiServer(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
