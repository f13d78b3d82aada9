"""The manifests for Kubernetes: by its published schemas, and by what they say of each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sortie.config.kubernetes import KubernetesSettings
from sortie.daemon import stop_deadline
from sortie.daemon.doctor.pods import CLAIM_RIGHTS, POD_RIGHTS, SANDBOX_RIGHTS
from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from sortie.store.postgres_leases import DAEMON_SECONDS
from sortie.transports.kubernetes.manifests import SANDBOX_API, pod
from tests.docs.pages import ROOT, code_blocks, page

FOLDER = ROOT / "deploy/kubernetes"
IMAGE = (ROOT / "deploy/Containerfile").read_text(encoding="utf-8")
CUSTOM = {"ServiceMonitor"}
"""Kinds of which Kubernetes itself publishes no schema."""

OLDEST = "1.29"
"""The first version in which a volume may be one pod's alone."""

Manifest = Any


def manifests(folder: Path = FOLDER) -> dict[str, Manifest]:
    """Return every object by its kind; there is one of each."""
    documents = [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    found = {document["kind"]: document for document in documents}
    assert len(found) == len(documents)
    return found


@pytest.mark.parametrize("kind", sorted(manifests().keys() - CUSTOM))
def test_the_schemas_of_kubernetes_hold(kind: str) -> None:
    """Each object is one that an old version and the newest one know, to the letter."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate, of the extra dev"
    )

    for version in (OLDEST, validate.latest_version()):
        validate.validate(manifests()[kind], version, strict=True)


def test_a_misspelt_key_is_seen() -> None:
    """The schemas are strict: a key that there is not would be told."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate, of the extra dev"
    )
    deployment = manifests()["Deployment"]
    deployment["spec"]["template"]["spec"]["terminationGracePeriod"] = 45

    with pytest.raises(validate.ValidationError):
        validate.validate(deployment, OLDEST, strict=True)


def test_one_daemon_at_a_time_that_may_end_in_good_order() -> None:
    """Never two pods, and more time than the daemon takes."""
    spec = manifests()["Deployment"]["spec"]
    pod = spec["template"]["spec"]

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert pod["terminationGracePeriodSeconds"] > (stop_deadline.TOTAL)


def test_the_objects_fit_each_other_and_the_image() -> None:
    """Names, labels, ports, users and paths are the same on both ends."""
    every = manifests()
    pod = every["Deployment"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    port = container["ports"][0]

    assert {each["metadata"].get("namespace") for each in every.values()} == {None, "sortie"}
    assert every["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    assert every["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    monitor = every["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"] == every["Service"]["metadata"]["labels"]
    assert monitor["endpoints"][0]["port"] == every["Service"]["spec"]["ports"][0]["name"]
    assert monitor["endpoints"][0]["authorization"]["credentials"] == {
        "name": container["envFrom"][0]["secretRef"]["name"],
        "key": "SORTIE_SERVER_AUTH_TOKEN",
    }
    assert (
        volumes["data"]["persistentVolumeClaim"]["claimName"]
        == (every["PersistentVolumeClaim"]["metadata"]["name"])
    )
    assert volumes["workflow"]["configMap"]["name"] == every["ConfigMap"]["metadata"]["name"]
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
    assert f"EXPOSE {port['containerPort']}\n" in IMAGE
    assert f"USER {pod['spec']['securityContext']['runAsUser']}:" in IMAGE
    assert "VOLUME /data\n" in IMAGE
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["exec"]["command"][1] == "/opt/sortie/probe.py"


PAIR = FOLDER / "high-availability"


@pytest.mark.parametrize("kind", sorted(manifests(PAIR)))
def test_the_schemas_hold_for_two_daemons(kind: str) -> None:
    """Each object is one that an old version and the newest one know, to the letter."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate, of the extra dev"
    )

    for version in (OLDEST, validate.latest_version()):
        validate.validate(manifests(PAIR)[kind], version, strict=True)


def test_one_of_two_daemons_is_always_there() -> None:
    """They are on two nodes, of which one is drained at a time, and replaced one by one."""
    every, one = manifests(PAIR), manifests()
    spec = every["Deployment"]["spec"]
    pod, before = spec["template"]["spec"], one["Deployment"]["spec"]["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    apart = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    budget = every["PodDisruptionBudget"]["spec"]

    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert spec["minReadySeconds"] > DAEMON_SECONDS
    assert pod["terminationGracePeriodSeconds"] > stop_deadline.TOTAL
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"] == labels
    assert (budget["minAvailable"], budget["selector"]["matchLabels"]) == (1, labels)
    assert every["Service"]["spec"] == one["Service"]["spec"]
    daemon, alone = pod["containers"][0], before["containers"][0]
    for key in ("image", "args", "envFrom", "ports", "livenessProbe", "securityContext"):
        assert daemon[key] == alone[key]
    assert {volume["name"] for volume in pod["volumes"]} == {
        mount["name"] for mount in daemon["volumeMounts"]
    }
    assert not [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    assert "url: $SORTIE_STORE_URL" in every["ConfigMap"]["data"]["WORKFLOW.md"]


@pytest.mark.parametrize(
    ("folder", "more"), [(FOLDER, {}), (PAIR, {"SORTIE_STORE_URL": "postgresql://db/d"})]
)
def test_the_workflow_in_the_manifests_is_valid(
    folder: Path, more: dict[str, str], tmp_path: Path
) -> None:
    """As the daemon reads it, with the secrets in its environment."""
    path = tmp_path / "WORKFLOW.md"
    path.write_text(manifests(folder)["ConfigMap"]["data"]["WORKFLOW.md"])
    environ = {"HOME": "/data", "GITHUB_TOKEN": "t" * 40, **more}

    assert load_workflow(RunOptions(workflow=path, environ=environ)).warnings == ()


AGENTS = FOLDER / "agents"


@pytest.mark.parametrize("kind", sorted(manifests(AGENTS)))
def test_the_schemas_hold_for_what_pods_of_agents_need(kind: str) -> None:
    """Each object is one that an old version and the newest one know, to the letter."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate, of the extra dev"
    )

    for version in (OLDEST, validate.latest_version()):
        validate.validate(manifests(AGENTS)[kind], version, strict=True)


def test_the_daemon_may_do_with_pods_what_it_does_and_no_more() -> None:
    """The Role has the rights that the doctor asks for, and is given to the daemon's account."""
    every = manifests(AGENTS)
    role, binding = every["Role"], every["RoleBinding"]
    granted = {
        (resource, verb)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert granted == {*POD_RIGHTS, *CLAIM_RIGHTS}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    account = manifests()["ServiceAccount"]["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert every["ServiceAccount"]["automountServiceAccountToken"] is False
    namespaces = {one["metadata"].get("namespace") for one in every.values()}
    assert namespaces == {None, every["Namespace"]["metadata"]["name"]}


SANDBOXES = AGENTS / "sandboxes"


@pytest.mark.parametrize("kind", sorted(manifests(SANDBOXES)))
def test_the_schemas_hold_for_what_sandboxes_need(kind: str) -> None:
    """Each object is one that an old version and the newest one know, to the letter."""
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate, of the extra dev"
    )

    for version in (OLDEST, validate.latest_version()):
        validate.validate(manifests(SANDBOXES)[kind], version, strict=True)


def test_the_daemon_may_do_with_sandboxes_what_it_does_and_no_more() -> None:
    """Besides the rights of pods, for the same account in the same namespace."""
    every, pods = manifests(SANDBOXES), manifests(AGENTS)
    (rule,) = every["Role"]["rules"]

    assert rule["apiGroups"] == [SANDBOX_API.partition("/")[0]]
    assert {(rule["resources"][0], verb) for verb in rule["verbs"]} == {*SANDBOX_RIGHTS}
    assert every["RoleBinding"]["roleRef"]["name"] == every["Role"]["metadata"]["name"]
    assert every["RoleBinding"]["subjects"] == pods["RoleBinding"]["subjects"]
    assert {one["metadata"]["namespace"] for one in every.values()} == {
        pods["Namespace"]["metadata"]["name"]
    }


def test_pods_of_agents_fulfil_the_restricted_standard() -> None:
    """Which their namespace enforces; and its policy means them by a label that they have."""
    every = manifests(AGENTS)
    pods = KubernetesSettings(image="agent:1")
    made = pod(pods, "/workspaces", "T-1", {})
    spec, container = made["spec"], made["spec"]["containers"][0]
    enforced = every["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    selector = every["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]

    assert enforced == "restricted"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all(volume.keys() <= {"name", "persistentVolumeClaim"} for volume in spec["volumes"])
    assert selector.items() <= made["metadata"]["labels"].items()


def test_no_secret_stands_in_a_manifest() -> None:
    """They are named, and made by the line of the page."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.yaml")]
    shell = "\n".join(code for language, code in code_blocks(page("deploy.md")) if language == "sh")

    assert "Secret" not in manifests() | manifests(PAIR)
    assert not any(re.search(r"(?i)(token|key): *[A-Za-z0-9]{16}", text) for text in texts)
    assert "kubectl -n sortie create secret generic sortie" in shell
