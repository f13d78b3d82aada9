"""The manifests for Kubernetes, applied by kubectl to a real API server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.kubernetes_api.api_server import ADMIN, ApiServer
from tests.kubernetes_api.test_kubectl import lacks

pytestmark = [pytest.mark.full, pytest.mark.skipif(lacks() is not None, reason=str(lacks()))]
FOLDER = ROOT / "deploy/kubernetes"


def kubectl(server: ApiServer, home: Path, *argv: str) -> str:
    """Run kubectl as an administrator; return what it writes."""
    cluster = {"server": server.url, "certificate-authority": str(server.authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": ADMIN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    (home / "kubeconfig").write_text(json.dumps(config))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": f"{home}/kubeconfig"}
    ran = subprocess.run(
        ["kubectl", *argv], env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.parametrize(
    "files", ["sortie.yaml", "high-availability/", "agents/", "agents/sandboxes/"]
)
def test_kubectl_applies_them(api_server: ApiServer, tmp_path: Path, files: str) -> None:
    """All objects, without a warning, also where they are there already."""
    path = FOLDER / files
    texts = [path] if path.is_file() else sorted(path.glob("*.yaml"))
    objects = [one for text in texts for one in yaml.safe_load_all(text.read_text())]
    if path.parent.parent == FOLDER:  # the namespace is made by what is for pods
        kubectl(api_server, tmp_path, "apply", "--server-side", "-f", str(path.parent))
    applying = ("apply", "--server-side", "-f", str(path))
    applied = kubectl(api_server, tmp_path, *applying)
    again = kubectl(api_server, tmp_path, *applying, "--dry-run=server")

    assert len(applied.splitlines()) == len(objects)
    assert all(line.endswith(" serverside-applied") for line in applied.splitlines())
    assert len(again.splitlines()) == len(objects)
