"""The image and compose.yaml, as far as they can be read without a registry.

``.ci/container`` builds the image and runs it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import sortie
from sortie.daemon import stop_deadline
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
IMAGE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def test_images_are_pinned() -> None:
    """Each has a version, ours that of the program."""
    ours = f"sortie:{sortie.__version__}"
    base = re.findall(r"^ARG BASE=(\S+)$", IMAGE, re.MULTILINE)
    images = [service["image"] for service in COMPOSE["services"].values()]
    manifest = (DEPLOY / "kubernetes/sortie.yaml").read_text(encoding="utf-8")

    assert ours in images
    assert f"image: {ours} " in manifest
    assert all(re.search(r":[^:]*\d[^:]*$", image) for image in [*images, *base])
    assert not [line for line in IMAGE.splitlines() if line.startswith("FROM ") and ":" in line]


def test_what_is_named_is_there() -> None:
    """Files that are copied or mounted exist, and each secret, config and volume is declared."""
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", IMAGE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    mounted = [
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
    ]
    files = [DEPLOY / name for name in mounted if name.startswith("./")]
    declared = COMPOSE["volumes"].keys()

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [path for path in files if not path.exists()] == []
    assert {name for name in mounted if not name.startswith(".")} == declared
    for service in COMPOSE["services"].values():
        assert {each["source"] for each in service.get("configs", [])} <= COMPOSE["configs"].keys()
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()


def test_nobody_but_this_machine_reaches_a_port() -> None:
    """Every published port is one of loopback."""
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_daemon_may_end_in_good_order() -> None:
    """It gets more time than it takes."""
    longest = stop_deadline.TOTAL

    assert float(COMPOSE["services"]["sortie"]["stop_grace_period"].removesuffix("s")) > longest


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of prometheus")
def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    """What stands in compose.yaml is a configuration, with the rules of this folder."""
    secret = tmp_path / "token"
    secret.write_text("token")
    text = COMPOSE["configs"]["prometheus"]["content"]
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/sortie_token", str(secret)))
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)

    done = subprocess.run(
        ["promtool", "check", "config", str(tmp_path / "prometheus.yml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
