"""Prometheus' own programs, where this machine has them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
ALERTS: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0][
    "rules"
]

with_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="Prometheus is not installed (Debian: apt-get install prometheus)",
)


def promtool(*arguments: str, cwd: Path) -> str:
    """Run promtool, which must succeed, and return all that it says."""
    ran = subprocess.run(
        ["promtool", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def dashboard() -> Any:
    """Return the dashboard for Grafana."""
    return json.loads((DEPLOY / "grafana-dashboard.json").read_text())
