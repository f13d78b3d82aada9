"""What is written to the API server: pods, and the claims of their volumes; pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sortie.config.kubernetes import PREFIX, KubernetesSettings
from sortie.config.values import Frozen
from sortie.resources.lease import Lease

CONTAINER = "agent"
"""The name of the container in which programs run."""

HOME = "@home"
"""The home directory of a pod, below the root: what agents remember there stays with the volume."""

INSTANCE, ISSUE, DAEMON, RUN = (
    f"{PREFIX}{word}" for word in ("instance", "issue", "daemon", "run")
)
TOKEN = f"{PREFIX}token"
"""The label of the token of the lease by which something was made."""
LEADS = f"{PREFIX}leads"
"""The annotation of a coordination lease with the workflow whose leader has the instance."""
WORKSPACE = f"{PREFIX}workspace"
RESCUED = f"{PREFIX}rescued"
RESCUED_AT = f"{PREFIX}rescued-at"
WORKFLOW = f"{PREFIX}workflow"
WARM = f"{PREFIX}warm"
"""The label of what no workspace has yet; its value stands for the settings it was made with."""

SANDBOX_API = "agents.x-k8s.io/v1beta1"
"""The API of Sandboxes, whose controller makes a pod for each."""

_WORDS_OF_NAME = re.compile(r"[^a-z0-9]+")
_NOT_IN_LABELS = re.compile(r"[^-._A-Za-z0-9]+")
_NAME_LIMIT = 63
_READING_BOUND = 3600  # seconds
_DIGEST = 10
_SERVE = """umask 077
mkdir -p "$HOME" || exit 1
trap 'exit 0' TERM INT
while :; do sleep 3600 & wait "$!"; done
"""


def pod_name(instance: str, key: str) -> str:
    """Return the name of the pod, and of the claim, for a workspace; no two have the same."""
    digest = hashlib.sha256(f"{instance}/{key}".encode()).hexdigest()[:_DIGEST]
    words = _WORDS_OF_NAME.sub("-", key.lower()).strip("-")
    room = _NAME_LIMIT - _DIGEST - 2
    head = instance[: room // 2]
    return re.sub(r"-+", "-", f"{head}-{words[: room - len(head)]}-{digest}")


def issue_label(key: str) -> str:
    """Return the label value that stands for a workspace, whatever characters its name has."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def with_workflow(pods: KubernetesSettings, name: str) -> KubernetesSettings:
    """Return settings by which all has the label of a workflow, as far as its name can be one."""
    value = _NOT_IN_LABELS.sub("-", name)[:_NAME_LIMIT].strip("-._")
    if not value:
        return pods
    return pods.model_copy(update={"labels": Frozen({**pods.labels, WORKFLOW: value})})


def labels(pods: KubernetesSettings, key: str) -> dict[str, str]:
    """Return the labels of all that belongs to a workspace."""
    return {**_common_labels(pods), ISSUE: issue_label(key)}


def _common_labels(pods: KubernetesSettings) -> dict[str, str]:
    return {
        **pods.labels,
        "app.kubernetes.io/managed-by": "sortie",
        INSTANCE: pods.instance,
    }


def owner_labels(life: str, lease: Lease | None) -> dict[str, str]:
    """Return the labels by which a life of a daemon, and its lease, know what they have made."""
    return {DAEMON: life, **token_label(lease)}


def token_label(lease: Lease | None) -> dict[str, str]:
    """Return the label with the token of a lease; none without a lease."""
    return {} if lease is None else {TOKEN: str(lease.token)}


def token_of(about: Mapping[str, Any]) -> int:
    """Return the token of the lease by which an object was made, 0 where it was made without."""
    said = str((about["metadata"].get("labels") or {}).get(TOKEN, ""))
    return int(said) if said.isdecimal() and said.isascii() else 0


def warm_labels(pods: KubernetesSettings, root: str, owner: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of what no workspace has yet, made by who has the labels ``owner``."""
    return {**_common_labels(pods), WARM: warm_digest(pods, root), **owner}


def warm_digest(pods: KubernetesSettings, root: str) -> str:
    """Return the label value that stands for the settings with which a warm pod is made."""
    spec = [pods.labels, _pod_spec(pods, root, ""), _claim_spec(pods)]
    return hashlib.sha256(json.dumps(spec, default=dict).encode()).hexdigest()[:32]


def claim(
    pods: KubernetesSettings, key: str, token: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the claim of the volume for a workspace; ``token`` is the label of a lease, if any."""
    metadata = {
        "name": pod_name(pods.instance, key),
        "labels": {**labels(pods, key), **token},
        "annotations": {WORKSPACE: key},
    }
    return _claim(pods, metadata)


def pod(
    pods: KubernetesSettings, root: str, key: str, owner: Mapping[str, str], claim_name: str = ""
) -> dict[str, Any]:
    """Return the pod of a workspace, made by who has the labels ``owner``.

    ``claim_name`` is the claim that the workspace has; without it that with the pod's name.
    """
    name = pod_name(pods.instance, key)
    metadata = {
        "name": name,
        "labels": {**labels(pods, key), **owner},
        "annotations": {WORKSPACE: key},
    }
    return _pod(pods, root, metadata, claim_name or name)


def sandbox(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Sandbox whose pod is this one; the volume is none of its own."""
    about = pod["metadata"]
    template = {"labels": about["labels"], "annotations": about["annotations"]}
    return {
        "apiVersion": SANDBOX_API,
        "kind": "Sandbox",
        "metadata": about,
        "spec": {"podTemplate": {"metadata": template, "spec": pod["spec"]}, "service": False},
    }


def sandbox_of(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the Sandbox that a pod was made for, None where there is none."""
    group = SANDBOX_API.partition("/")[0]
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner["kind"] == "Sandbox" and owner["apiVersion"].partition("/")[0] == group:
            return dict(owner)
    return None


def warm_claim(
    pods: KubernetesSettings, root: str, name: str, owner: Mapping[str, str]
) -> dict[str, Any]:
    """Return the claim of a pod that no workspace has yet."""
    return _claim(pods, {"name": name, "labels": warm_labels(pods, root, owner)})


def warm_pod(
    pods: KubernetesSettings, root: str, name: str, owner: Mapping[str, str]
) -> dict[str, Any]:
    """Return a pod that no workspace has yet; its claim has its name."""
    metadata = {"name": name, "labels": warm_labels(pods, root, owner)}
    return _pod(pods, root, metadata, name)


def reading_pod(
    pods: KubernetesSettings, root: str, name: str, key: str, claim_name: str
) -> dict[str, Any]:
    """Return a pod in which a person reads the volume of a workspace; it has no variables, and
    belongs to no instance."""
    metadata = {
        "name": name,
        "labels": {**pods.labels, "app.kubernetes.io/managed-by": "sortie"},
        "annotations": {WORKSPACE: key},
    }
    made = _pod(pods.model_copy(update={"env": Frozen()}), root, metadata, claim_name)
    made["spec"]["activeDeadlineSeconds"] = _READING_BOUND
    return made


def taken(key: str) -> dict[str, Any]:
    """Return the changes by which what no workspace had becomes one's."""
    return {"labels": {ISSUE: issue_label(key), WARM: None}, "annotations": {WORKSPACE: key}}


def claim_of(pod: Mapping[str, Any]) -> str | None:
    """Return the name of a pod's claim, None where it has none."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            return str(volume["persistentVolumeClaim"]["claimName"])
    return None


def _claim(pods: KubernetesSettings, metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": _claim_spec(pods),
    }


def _claim_spec(pods: KubernetesSettings) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": pods.volume.size}},
    }
    if pods.volume.storage_class is not None:
        spec["storageClassName"] = pods.volume.storage_class
    return spec


def _pod(
    pods: KubernetesSettings, root: str, metadata: Mapping[str, Any], claim_name: str
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _pod_spec(pods, root, claim_name),
    }


def _pod_spec(pods: KubernetesSettings, root: str, claim_name: str) -> dict[str, Any]:
    has_claim = pods.volume.kind == "claim"
    volume = {"persistentVolumeClaim": {"claimName": claim_name}} if has_claim else {"emptyDir": {}}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # its pause reaps what programs leave behind
        "terminationGracePeriodSeconds": 5,
        "securityContext": _pod_security(pods.run_as_user),
        "containers": [_container(pods, root)],
        "volumes": [{"name": "workspaces", **volume}],
    }
    if pods.service_account is not None:
        spec["serviceAccountName"] = pods.service_account
    if pods.node_selector:
        spec["nodeSelector"] = dict(pods.node_selector)
    if pods.runtime_class is not None:
        spec["runtimeClassName"] = pods.runtime_class
    if pods.pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in pods.pull_secrets]
    return spec


def _container(pods: KubernetesSettings, root: str) -> dict[str, Any]:
    secrets = [
        {
            "name": name,
            "valueFrom": {"secretKeyRef": {"name": of.secret, "key": of.key}},
        }
        for name, of in pods.env.items()
    ]
    resources = {
        key: dict(given)
        for key in ("requests", "limits")
        if (given := getattr(pods.resources, key))
    }
    return {
        "name": CONTAINER,
        "image": pods.image,
        "command": ["/bin/sh", "-c", _SERVE],
        "env": [{"name": "HOME", "value": f"{root}/{HOME}"}, *secrets],
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "workspaces", "mountPath": root}],
    }


def _pod_security(user: int) -> Mapping[str, Any]:
    return {
        "runAsNonRoot": user != 0,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
