"""The ``worker.kubernetes`` block: each issue's runs live in a pod."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PlainSerializer

from sortie.config.block import Block
from sortie.config.report import Finding
from sortie.config.values import (
    Frozen,
    Line,
    choice,
    matching,
    milliseconds,
    needs,
    whole,
)
from sortie.documents import Node, Path
from sortie.model import LOCAL

PREFIX = "sortie.dev/"
"""What labels and annotations of Sortie's own begin with."""

_freeze_texts: Callable[[Mapping[str, str]], Mapping[str, str]] = Frozen

Texts = Annotated[
    Mapping[str, str],
    AfterValidator(_freeze_texts),
    PlainSerializer(dict, return_type=dict[str, str]),
]
"""Texts by name; it cannot be changed."""

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_QUANTITY = r"\d+(\.\d+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?"

DnsLabel = Annotated[str, matching(_DNS_LABEL, "a name of small letters, digits and -")]
DnsName = Annotated[str, matching(_DNS_NAME, "a name of small letters, digits, - and .")]
Quantity = Annotated[str, matching(_QUANTITY, 'a quantity of Kubernetes, as "500m" or 2Gi')]


def _absolute(path: str) -> str:
    parts = path.split("/")
    if not path.startswith("/") or any(part in ("", ".", "..") for part in parts[1:]):
        raise needs("an absolute path of a directory, as /workspaces")
    return path


class ClusterSettings(Block):
    """A namespace in which pods are made; ``name`` is its host's.

    Without ``context`` it is the current one of the kubeconfig, or the cluster that the daemon runs
    in; without ``namespace`` that of the context.
    """

    name: DnsLabel = "kubernetes"
    context: Line | None = None
    namespace: DnsLabel | None = None


class ResourceSettings(Block):
    """What a pod is promised, and what it may use at most."""

    requests: Texts = Frozen()
    limits: Texts = Frozen()


class VolumeSettings(Block):
    """Where the workspace of a pod lies.

    A ``claim`` survives its pod; an ``emptyDir`` ends with it.
    """

    kind: Annotated[Literal["claim", "emptyDir"], choice("claim", "emptyDir")] = "claim"
    size: Quantity = "10Gi"
    storage_class: DnsName | None = None


class SecretKey(Block):
    """A key of a Secret in the namespace of the pods."""

    secret: DnsName
    key: Annotated[str, matching(r"[-._a-zA-Z0-9]{1,253}", "the key of a Secret")]


_freeze_keys: Callable[[Mapping[str, SecretKey]], Mapping[str, SecretKey]] = Frozen

SecretKeys = Annotated[
    Mapping[str, SecretKey],
    AfterValidator(_freeze_keys),
    PlainSerializer(dict, return_type=dict[str, SecretKey]),
]
"""Keys of Secrets by the variable that they fill; it cannot be changed."""


class KubernetesSettings(Block):
    """The pods in which runs live, one for each issue.

    ``instance`` tells daemons apart that share a namespace. ``root`` is where the volume is
    mounted. ``env`` are variables that the kubelet fills from Secrets. ``max_pods`` bounds the pods
    in each namespace, ``warm`` is how many of them wait there for an issue. ``sandboxes`` tells
    whether a pod is made as a Sandbox of agent-sandbox; ``auto``: where the cluster has them.
    """

    image: Line
    clusters: tuple[ClusterSettings, ...] = (ClusterSettings(),)
    instance: DnsLabel = "sortie"
    root: Annotated[str, AfterValidator(_absolute)] = "/workspaces"
    resources: ResourceSettings = ResourceSettings()
    service_account: DnsName | None = None
    node_selector: Texts = Frozen()
    runtime_class: DnsName | None = None
    pull_secrets: tuple[DnsName, ...] = ()
    volume: VolumeSettings = VolumeSettings()
    run_as_user: Annotated[int, whole(0, 2**31 - 1)] = 10001
    env: SecretKeys = Frozen()
    labels: Texts = Frozen()
    sandboxes: Annotated[Literal["never", "auto", "always"], choice("never", "auto", "always")] = (
        "never"
    )
    max_pods: Annotated[int, whole(1)] | None = None
    warm: Annotated[int, whole(0)] = 0
    start_timeout: Annotated[float, milliseconds(1000)] = Field(300.0, alias="start_timeout_ms")


def named_clusters(pods: Node) -> dict[str, Node | None]:
    """Return where the clusters of a block stand, by their names; None for the one that stands
    nowhere."""
    default = ClusterSettings().name
    listed = pods.at(("clusters",))
    if listed is None:
        return {default: None}
    named = [(item.at(("name",)), item) for item in listed.items()]
    return {default if name is None else str(name.value): item for name, item in named}


_LABEL_KEY = rf"({_DNS_NAME}/)?[A-Za-z0-9]([-._A-Za-z0-9]{{0,61}}[A-Za-z0-9])?"
_LABEL_VALUE = r"([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?"
_RESOURCE = r"([a-z0-9.-]+/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"

_HERE: tuple[str, ...] = ("worker", "kubernetes")


def kubernetes_findings(pods: KubernetesSettings, per_host: int | None) -> Iterator[Finding]:
    """Yield the names that Kubernetes would refuse, and what does not go together."""
    if not pods.clusters:
        yield Finding(path=(*_HERE, "clusters"), message="is empty; leave it out, or name one")
    names = [cluster.name for cluster in pods.clusters]
    for position, name in enumerate(names):
        path: Path = (*_HERE, "clusters", position, "name")
        if name == LOCAL:
            message = f'"{LOCAL}" means this machine everywhere; give the cluster another name'
            yield Finding(path=path, message=message)
        if name in names[:position]:
            yield Finding(path=path, message=f'"{name}" stands twice')
    yield from _bad_names(("labels",), pods.labels, _LABEL_KEY, _LABEL_VALUE, "a label")
    selector = pods.node_selector
    yield from _bad_names(("node_selector",), selector, _LABEL_KEY, _LABEL_VALUE, "a label")
    for key in ("requests", "limits"):
        given = getattr(pods.resources, key)
        yield from _bad_names(("resources", key), given, _RESOURCE, _QUANTITY, "a quantity")
    for name in pods.env:
        if re.fullmatch(_VARIABLE, name, re.ASCII) is None:
            message = "is no name of an environment variable"
            yield Finding(path=(*_HERE, "env", name), message=message)
    for name in pods.labels:
        if name.startswith(PREFIX):
            message = f"is Sortie's own; use labels that do not begin with {PREFIX}"
            yield Finding(path=(*_HERE, "labels", name), message=message)
    if pods.max_pods is not None and per_host is not None and pods.max_pods < per_host:
        message = "is less than worker.max_concurrent_agents_per_host; runs would wait for a pod"
        yield Finding(path=(*_HERE, "max_pods"), message=message, severity="warning")
    if pods.warm and pods.sandboxes != "never":
        message = "cannot be had with Sandboxes; leave it out, or set sandboxes to never"
        yield Finding(path=(*_HERE, "warm"), message=message)
    if pods.max_pods is not None and pods.max_pods < pods.warm:
        message = "is more than worker.kubernetes.max_pods, which is as many as are made"
        yield Finding(path=(*_HERE, "warm"), message=message, severity="warning")


def _bad_names(
    path: tuple[str, ...], given: Mapping[str, str], key: str, value: str, what: str
) -> Iterator[Finding]:
    """Yield the entries of a mapping that Kubernetes would refuse."""
    for name, text in given.items():
        if re.fullmatch(key, name, re.ASCII) is None:
            yield Finding(path=(*_HERE, *path, name), message="is no name that Kubernetes takes")
        elif re.fullmatch(value, text, re.ASCII) is None:
            message = f'"{text}" is no value of {what} that Kubernetes takes'
            yield Finding(path=(*_HERE, *path, name), message=message)
