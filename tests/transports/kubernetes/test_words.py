"""How a pod stands, what its things are called, and which pod a path is in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.config.kubernetes import KubernetesSettings
from sortie.transports.kubernetes.manifests import (
    DAEMON,
    claim,
    issue_label,
    pod,
    pod_name,
    with_workflow,
)
from sortie.transports.kubernetes.paths import InPod, file_of, pod_of, workspace_of
from sortie.transports.kubernetes.standing import PodState, standing_of

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
ROOT = "/workspaces"


def container(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "agent", "state": state}]}


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        ({"phase": "Pending"}, PodState.WAITING, ""),
        ({"phase": "Running", **container(running={})}, PodState.READY, ""),
        (
            {"phase": "Running", **container(terminated={"reason": "OOMKilled", "exitCode": 137})},
            PodState.WAITING,
            "OOMKilled (its container ended with 137)",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            PodState.OVER,
            "Evicted: low on memory",
        ),
        (
            {
                "phase": "Failed",
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                        "message": "default-scheduler: preempting to accommodate a higher priority",
                    }
                ],
            },
            PodState.OVER,
            "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority",
        ),
        ({"phase": "Succeeded"}, PodState.OVER, "its container has ended"),
    ],
)
def test_how_a_pod_stands(status: dict[str, Any], state: PodState, reason: str) -> None:
    """By its phase, its conditions and its container."""
    found = standing_of({"metadata": {}, "status": status})

    assert (found.state, found.reason) == (state, reason)


def test_a_pod_that_is_being_deleted_is_none_to_use() -> None:
    """Although it runs."""
    running = {"phase": "Running", **container(running={})}
    found = standing_of({"metadata": {"deletionTimestamp": "now"}, "status": running})

    assert found.state is PodState.LEAVING


@given(
    st.text(alphabet="aZ9._-@é", min_size=1, max_size=255), st.sampled_from(["sortie", "x" * 63])
)
def test_names_are_ones_that_kubernetes_takes(key: str, instance: str) -> None:
    """Whatever a workspace is called, and no longer than a host's name."""
    name = pod_name(instance, key)

    assert NAME.fullmatch(name)
    assert len(name) <= 63
    assert re.fullmatch(r"[0-9a-f]{32}", issue_label(key))
    assert pod_name(instance, f"{key}x") != name


@pytest.mark.parametrize(
    ("ready", "lost"),
    [
        ({"status": "True"}, False),
        ({"status": "False"}, True),
        ({"status": "False", "reason": "ContainersNotReady"}, False),
        ({"status": "False", "reason": "ReadinessGatesNotReady"}, False),
    ],
)
def test_a_pod_whose_node_is_away(ready: dict[str, str], lost: bool) -> None:
    """The controller of nodes gives no reason where it marks a pod as not ready; kubelets do."""
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", **ready}],
        **container(running={}),
    }
    standing = standing_of({"status": status})

    assert (standing.state, standing.node_lost) == (PodState.READY, lost)


@pytest.mark.parametrize("kind", ["claim", "emptyDir"])
def test_the_schemas_of_kubernetes_hold(kind: str) -> None:
    """A pod with everything, and its claim."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate, of the extra dev"
    )
    pods = KubernetesSettings.model_validate(
        {
            "image": "agent:1",
            "volume": {"kind": kind, "storage_class": "fast"},
            "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "2Gi"}},
            "service_account": "agent",
            "node_selector": {"pool": "agents"},
            "runtime_class": "gvisor",
            "pull_secrets": ["registry"],
            "env": {"KEY": {"secret": "agent", "key": "key"}},
            "labels": {"team": "a"},
        }
    )

    for version in ("1.30", validate.latest_version()):
        validate.validate(pod(pods, ROOT, "T-1", {DAEMON: "life"}), version, strict=True)
        validate.validate(claim(pods, "T-1"), version, strict=True)


def test_which_pod_a_path_is_in() -> None:
    """A workspace is asked for by its key, and has all of its issue beside it."""
    assert workspace_of(ROOT, f"{ROOT}/T-1") == InPod(key="T-1", path=f"{ROOT}/T-1/T-1")
    assert workspace_of(ROOT, f"{ROOT}/T-1/T-1/a") == InPod(key="T-1", path=f"{ROOT}/T-1/T-1/a")
    assert pod_of(ROOT, f"{ROOT}/T-1/@verify") == InPod(key="T-1", path=f"{ROOT}/T-1/@verify")
    assert file_of(ROOT, ROOT, "@incomplete/T-1") == InPod(key="T-1", path=f"{ROOT}/T-1")
    for nowhere in (ROOT, "/", "/workspaces2/T-1", f"{ROOT}/@home"):
        assert pod_of(ROOT, nowhere) is None
    assert file_of(ROOT, ROOT, "@incomplete/@probe") is None
    assert file_of(ROOT, ROOT, "stray") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("docs", "docs"),
        ("My work (old)", "My-work-old"),
        ("-x.", "x"),
        ("a" * 70, "a" * 63),
        ("übung", "bung"),
        ("工作", None),
    ],
)
def test_the_name_of_a_workflow_becomes_a_label(name: str, value: str | None) -> None:
    """As far as Kubernetes takes it; other labels stay."""
    pods = with_workflow(KubernetesSettings(image="i", labels={"team": "docs"}), name)

    assert pods.labels.get("sortie.dev/workflow") == value
    assert pods.labels["team"] == "docs"
