"""The ``worker`` block: on which hosts agents run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sortie.config.block import Block
from sortie.config.kubernetes import KubernetesSettings
from sortie.config.values import PathText, SshHost, VariableName, choice, milliseconds, whole


class WorkerSettings(Block):
    """On which SSH hosts agents run, and how they are reached, or in which clusters; where there is
    neither, on this machine."""

    ssh_hosts: tuple[SshHost, ...] = ()
    kubernetes: KubernetesSettings | None = None
    kubeconfig: PathText | None = None
    max_concurrent_agents_per_host: Annotated[int, whole(1)] | None = None
    ssh_strict_host_key_checking: Annotated[str, choice("accept-new", "yes", "no")] = "accept-new"
    ssh_config: PathText | None = None
    ssh_known_hosts: PathText | None = None
    ssh_identity_files: tuple[PathText, ...] = ()
    ssh_pass_env: tuple[VariableName, ...] = ()
    ssh_secret_delivery: Annotated[str, choice("stdin", "inline")] = "stdin"
    ssh_reattach: bool = False
    ssh_reattach_time: Annotated[float, milliseconds(30_000, 86_400_000)] = Field(
        300.0, alias="ssh_reattach_ms"
    )

    @property
    def outlived(self) -> float:
        """Seconds without a link for which a program on a host lives; 0 where it ends with it."""
        return self.ssh_reattach_time if self.ssh_reattach else 0.0

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts on which agents run; empty for this machine."""
        if self.kubernetes is not None:
            return tuple(cluster.name for cluster in self.kubernetes.clusters)
        return self.ssh_hosts

    @property
    def remote_root(self) -> str | None:
        """Where workspaces are in pods; None where there are none."""
        return None if self.kubernetes is None else self.kubernetes.root
