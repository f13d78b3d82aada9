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
PAIR: Any = yaml.safe_load((DEPLOY / "high-availability/compose.yaml").read_text(encoding="utf-8"))
EXAMPLES = [
    pytest.param(COMPOSE, DEPLOY, id="one"),
    pytest.param(PAIR, DEPLOY / "high-availability", id="two"),
]


def test_images_are_pinned() -> None:
    """Each has a version, ours that of the program."""
    ours = f"sortie:{sortie.__version__}"
    base = re.findall(r"^ARG BASE=(\S+)$", IMAGE, re.MULTILINE)
    examples = [*COMPOSE["services"].values(), *PAIR["services"].values()]
    images = [service["image"] for service in examples]

    assert images.count(ours) == 3
    for name in ("sortie.yaml", "high-availability/sortie.yaml"):
        assert f"image: {ours} " in (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")
    assert all(re.search(r":[^:]*\d[^:]*$", image) for image in [*images, *base])
    assert not [line for line in IMAGE.splitlines() if line.startswith("FROM ") and ":" in line]


def test_what_is_copied_is_there() -> None:
    """The image takes files of this checkout."""
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", IMAGE, re.MULTILINE)
        for source in line.split()[:-1]
    ]

    assert [name for name in copied if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(("compose", "folder"), EXAMPLES)
def test_what_is_named_is_there(compose: Any, folder: Path) -> None:
    """Files that are mounted exist, and each secret, config and volume is declared."""
    services = compose["services"].values()
    mounted = [volume.split(":")[0] for service in services for volume in service["volumes"]]
    files = [folder / name for name in mounted if name.endswith((".yml", ".json"))]
    declared = compose["volumes"].keys()

    assert files
    assert [path for path in files if not path.exists()] == []
    assert {name for name in mounted if not name.startswith(".")} == declared
    for service in services:
        assert {each["source"] for each in service.get("configs", [])} <= compose["configs"].keys()
        assert set(service.get("secrets", [])) <= compose["secrets"].keys()


@pytest.mark.parametrize(("compose", "folder"), EXAMPLES)
def test_nobody_but_this_machine_reaches_a_port(compose: Any, folder: Path) -> None:
    """Every published port is one of loopback."""
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_daemon_may_end_in_good_order() -> None:
    """It gets more time than it takes."""
    longest = stop_deadline.TOTAL
    daemons = [COMPOSE["services"]["sortie"], PAIR["services"]["east"], PAIR["services"]["west"]]

    assert all(float(one["stop_grace_period"].removesuffix("s")) > longest for one in daemons)


def test_two_daemons_share_nothing_but_the_server() -> None:
    """Each has a name, a volume, a port and an address of its own, which Prometheus asks."""
    pair = [PAIR["services"][name] for name in ("east", "west")]
    addresses = [one["networks"]["sortie"]["ipv4_address"] for one in pair]
    targets = re.findall(r'"([\d.]+):7678"', PAIR["configs"]["prometheus"]["content"])

    for key in ("hostname", "ports", "volumes"):
        assert pair[0][key] != pair[1][key]
    assert targets == addresses
    assert all(one["env_file"] == pair[0]["env_file"] for one in pair)
    assert all("postgres" in one["depends_on"] for one in pair)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of prometheus")
@pytest.mark.parametrize(("compose", "folder"), EXAMPLES)
def test_prometheus_takes_its_configuration(
    compose: Any,
    folder: Path,
    tmp_path: Path,
) -> None:
    """What stands in compose.yaml is a configuration, with the rules of this folder."""
    secret = tmp_path / "token"
    secret.write_text("token")
    text = compose["configs"]["prometheus"]["content"]
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
