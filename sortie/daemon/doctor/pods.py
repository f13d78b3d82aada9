"""The checks of namespaces in which runs have pods: the way there, and what the daemon may do.

Rule: nothing is made there, not even a pod; whether the image is good shows with the first run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.config.settings import Settings
from sortie.daemon.doctor.checkup import Diagnosis, Tell, run_checks
from sortie.daemon.pod_transports import place_of
from sortie.model import HostError
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.transports.kubernetes.api_errors import ApiRefusal
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.manifests import INSTANCE, SANDBOX_API, WARM
from sortie.transports.kubernetes.objects import PODS, SANDBOXES, ApiObjects
from sortie.transports.kubernetes.standing import PodState, standing_of

POD_RIGHTS = (
    *(("pods", verb) for verb in ("create", "get", "list", "watch", "patch", "delete")),
    ("pods/exec", "create"),
    ("pods/exec", "get"),
    *(("leases", verb) for verb in ("create", "get", "update")),
)
CLAIM_RIGHTS = tuple(
    ("persistentvolumeclaims", verb) for verb in ("create", "get", "list", "patch", "delete")
)
SANDBOX_RIGHTS = tuple((SANDBOXES, verb) for verb in ("create", "list", "watch", "patch", "delete"))
_GROUPS = {"leases": "coordination.k8s.io", SANDBOXES: SANDBOX_API.partition("/")[0]}
_REMEDY = (
    "give the daemon's account the Role of deploy/kubernetes/agents/pods.yaml in that namespace"
)

_SANDBOX_REMEDY = "apply deploy/kubernetes/agents/sandboxes/role.yaml in that namespace"


async def look_at_pods(settings: Settings, tell: Tell, hosts: Collection[str]) -> None:
    """Check all namespaces at the same time, and report one after the other."""
    found: dict[str, list[Diagnosis]] = {host: [] for host in hosts}
    async with trio.open_nursery() as nursery:
        for host in hosts:
            nursery.start_soon(_look_at, host, settings, found[host].append)
    for host in hosts:
        for diagnosis in found[host]:
            tell(diagnosis)


async def _look_at(host: str, settings: Settings, tell: Tell) -> None:
    look = NamespaceLook(host, settings)
    try:
        await run_checks(f"hosts.{host}", look.checks(), tell)
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(2):
            await look.cluster.aclose()


class NamespaceLook:
    """One namespace of a cluster."""

    def __init__(self, host: str, settings: Settings) -> None:
        self.cluster = Cluster(place_of(host, settings))
        self._settings = settings

    def checks(self) -> Sequence[Check]:
        """Return the checks, each of which needs those before it that lead there."""
        return (
            Check(name="reach", ask=self._reach),
            Check(name="rights", ask=self._rights, needs=("reach",)),
            *self._sandbox_checks(),
            Check(name="secrets", ask=self._secrets, needs=("reach",)),
            *self._warm_checks(),
        )

    def _warm_checks(self) -> Sequence[Check]:
        pods = self._settings.worker.kubernetes
        if pods is None or not pods.warm:
            return ()
        return (Check(name="warm", ask=partial(self._warm, pods), needs=("rights",)),)

    async def _reach(self) -> CheckResult:
        try:
            found = await self.cluster.version()
        except HostError as exc:
            return failed(str(exc), "look at the kubeconfig, the context, and the network")
        return passed(
            f"an API server {found} answers, and pods go to the namespace {self.cluster.namespace}"
        )

    async def _rights(self) -> CheckResult:
        pods = self._settings.worker.kubernetes
        wanted = POD_RIGHTS
        if pods is not None and pods.volume.kind == "claim":
            wanted += CLAIM_RIGHTS
        return await self._may_all(wanted, "make, run programs in, watch and delete pods", _REMEDY)

    async def _may_all(
        self, wanted: Sequence[tuple[str, str]], what: str, remedy: str
    ) -> CheckResult:
        """Tell whether the daemon has all of some rights, which let it do ``what``."""
        missing = []
        for resource, verb in wanted:
            try:
                allowed = await may(self.cluster, verb, resource, _GROUPS.get(resource, ""))
            except (HostError, ApiRefusal) as exc:
                return warned(f"it does not say what the daemon may do: {exc}", remedy)
            if not allowed:
                missing.append(f"{verb} {resource}")
        where = f"in the namespace {self.cluster.namespace}"
        if missing:
            return failed(f"the daemon may not {', '.join(missing)} {where}", remedy)
        return passed(f"the daemon may {what} {where}")

    def _sandbox_checks(self) -> Sequence[Check]:
        pods = self._settings.worker.kubernetes
        if pods is None or pods.sandboxes == "never":
            return ()
        return (Check(name="sandboxes", ask=partial(self._sandboxes, pods), needs=("reach",)),)

    async def _sandboxes(self, pods: KubernetesSettings) -> CheckResult:
        """Tell whether pods are made as Sandboxes; whether their controller runs shows with the
        first run."""
        if await ApiObjects(self.cluster).serves(SANDBOXES):
            return await self._may_all(
                SANDBOX_RIGHTS, "make, watch and delete Sandboxes", _SANDBOX_REMEDY
            )
        said = f"the cluster has no {SANDBOX_API}"
        if pods.sandboxes == "auto":
            return passed(f"{said}, so pods are made directly")
        return failed(
            f"{said}, and worker.kubernetes.sandboxes is always",
            "install agent-sandbox 0.5 or newer",
        )

    async def _secrets(self) -> CheckResult:
        """Tell that the daemon cannot read secrets, which it does not need."""
        try:
            reads = await may(self.cluster, "get", "secrets")
        except (HostError, ApiRefusal) as exc:
            return warned(f"it does not say what the daemon may do: {exc}", _REMEDY)
        if reads:
            return warned(
                f"the daemon may read all Secrets of the namespace {self.cluster.namespace}, which"
                " it never does",
                f"take that right away; {_REMEDY}",
            )
        return passed("the daemon may not read Secrets; the kubelet gives pods what they need")

    async def _warm(self, pods: KubernetesSettings) -> CheckResult:
        """Tell how many pods wait for an issue, which are there while the daemon runs."""
        labels = {INSTANCE: pods.instance, WARM: None}
        found = [standing_of(pod) for pod in await ApiObjects(self.cluster).listed(PODS, labels)]
        if not found:
            return passed(f"the daemon makes {pods.warm} warm pods while it runs; none is there")
        ready = sum(one.state is PodState.READY for one in found)
        said = f"{ready} of {pods.warm} warm pods wait for an issue"
        if ready >= pods.warm:
            return passed(said)
        reason = next((one.reason for one in found if one.reason), "others are being made")
        return warned(f"{said}: {reason}", "look at pods.warm in the log of the daemon")


async def may(cluster: Cluster, verb: str, resource: str, group: str = "") -> bool:
    """Tell whether the daemon may do something in the namespace. Raises HostError, ApiRefusal."""
    kind, _, below = resource.partition("/")
    asked = {
        "namespace": cluster.namespace,
        "verb": verb,
        "group": group,
        "resource": kind,
        "subresource": below,
    }
    answer = await cluster.request(
        "ask for rights",
        "POST",
        "selfsubjectaccessreviews",
        version="authorization.k8s.io/v1",
        body={
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        },
        cluster_wide=True,
    )
    return bool((answer.get("status") or {}).get("allowed"))
