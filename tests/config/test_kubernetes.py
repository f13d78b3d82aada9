"""The settings for pods: their defaults, and located errors for what Kubernetes would refuse."""

from __future__ import annotations

import pytest

from sortie.config.kubernetes import ClusterSettings, KubernetesSettings
from tests.config.sample import GOOD, findings, settings_of

PODS = GOOD + "worker:\n  kubernetes:\n    image: agent:1\n"


def test_an_image_is_all_that_is_needed() -> None:
    """Everything else has a default: one namespace, the current one, and a claim for each issue."""
    settings = settings_of(PODS)

    assert settings.worker.kubernetes == KubernetesSettings(image="agent:1")
    assert settings.worker.hosts == ("kubernetes",)
    assert settings.remote_root == "/workspaces"
    pods = settings.worker.kubernetes
    assert pods is not None
    assert (pods.volume.kind, pods.volume.size) == ("claim", "10Gi")
    assert (pods.start_timeout, pods.run_as_user, pods.max_pods) == (300.0, 10001, None)
    assert (pods.warm, pods.sandboxes) == (0, "never")


def test_namespaces_are_hosts_by_their_names() -> None:
    """Each cluster or namespace is a host; a rule may choose among them."""
    settings = settings_of(
        PODS
        + "    clusters:\n"
        + "      - {name: east, context: prod-east, namespace: agents}\n"
        + "      - {name: west}\n"
        + "rules:\n  - when: {labels: [x]}\n    hosts: west\n"
    )

    assert settings.worker.hosts == ("east", "west")
    assert settings.rules[0].settings.worker.hosts == ("west",)
    assert settings.worker.kubernetes is not None
    assert settings.worker.kubernetes.clusters[0] == ClusterSettings(
        name="east", context="prod-east", namespace="agents"
    )


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (
            "    root: workspaces",
            "worker.kubernetes.root: needs an absolute path of a directory, as /workspaces",
        ),
        ("    root: /a/../b", "worker.kubernetes.root: needs an absolute path"),
        ("    volume: {kind: nfs}", "worker.kubernetes.volume.kind: needs claim or emptyDir"),
        ("    volume: {size: much}", "worker.kubernetes.volume.size: needs a quantity"),
        ("    resources: {limits: {memory: lots}}", 'limits.memory: "lots" is no value'),
        ("    node_selector: {'a b': c}", "is no name that Kubernetes takes"),
        ("    labels: {sortie.dev/run: x}", "labels.sortie.dev/run: is Sortie's own"),
        ("    env: {1KEY: {secret: s, key: k}}", "is no name of an environment variable"),
        ("    env: {KEY: {secret: s}}", "worker.kubernetes.env.KEY.key: is required"),
        ("    clusters: [{name: local}]", '"local" means this machine everywhere'),
        ("    clusters: [{name: a}, {name: a}]", '"a" stands twice'),
        ("    max_pods: 0", "worker.kubernetes.max_pods: needs a whole number of at least 1"),
        ("    warm: -1", "worker.kubernetes.warm: needs a whole number of at least 0"),
        ("    sandboxes: yes", "worker.kubernetes.sandboxes: needs never, auto or always"),
        (
            "    sandboxes: auto\n    warm: 2",
            "worker.kubernetes.warm: cannot be had with Sandboxes; leave it out, or set sandboxes",
        ),
        ("    wram: 2", "unknown key"),
        ("  ssh_hosts: [build1]", "cannot stand beside worker.ssh_hosts"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(lines: str, found: str) -> None:
    """Line and column of the value, and what it should be."""
    told = findings(PODS + lines + "\n")

    assert len(told) == 1
    assert found in told[0]
    assert told[0].startswith("W:")


def test_fewer_pods_than_runs_is_warned_of() -> None:
    """Runs would be started only to wait for a pod."""
    told = findings(PODS + "    max_pods: 2\n  max_concurrent_agents_per_host: 3\n")

    assert len(told) == 1
    assert "max_pods: is less than worker.max_concurrent_agents_per_host" in told[0]


def test_more_warm_pods_than_may_be_are_warned_of() -> None:
    """They count as pods, and no more are made."""
    told = findings(PODS + "    max_pods: 2\n    warm: 3\n")

    assert len(told) == 1
    assert "worker.kubernetes.warm: is more than worker.kubernetes.max_pods" in told[0]
    assert findings(PODS + "    max_pods: 2\n    warm: 2\n") == []
