"""What has to hold before work is pushed: it is committed and compared, its commands succeed, and
no secret stands in it."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Issue
from sortie.model.deliveries import FILES_SHOWN
from sortie.worker.context import Assignment, RemoteRepository, RunContext, RunReporter
from sortie.worker.environment import RunEnvironment
from sortie.worker.faults import (
    WorkFault,
    about_leftovers,
    about_secret,
    about_size,
    about_verification,
)
from sortie.worker.proposal import Words
from sortie.worker.verification import secret_in, verify
from sortie.worker.work_record import WorkRecord
from sortie.workspaces import Workspace
from sortie.workspaces.git_values import Changes
from sortie.workspaces.repository import Repository


class WorkProof:
    """Proves the work of one run; each method raises what git, its host and templates raise."""

    def __init__(
        self,
        job: Assignment,
        context: RunContext,
        remote: RemoteRepository,
        reporter: RunReporter,
        workspace: Workspace,
        repository: Repository,
        words: Words,
    ) -> None:
        self._job = job
        self._context = context
        self._remote = remote
        self._reporter = reporter
        self._workspace = workspace
        self._repository = repository
        self._words = words
        self._environment = RunEnvironment(job, context, workspace)

    async def fault(self, work: WorkRecord, issue: Issue) -> WorkFault | None:
        """Commit, compare and verify; return what the agent has to mend, None for nothing."""
        env = self._environment.for_git()
        may = self._context.settings.repository.leftovers == "commit"
        left = await self._repository.commit_leftovers(
            self._workspace.path,
            self._workspace.key,
            await self._words.message(issue),
            env,
            may=may,
        )
        if (fault := about_leftovers(left, may=may)) is not None:
            return fault
        changes = await self._repository.changes(left.head, env)
        if (fault := about_size(changes)) is not None:
            return fault
        self._note(work, changes, left.head)
        if not changes.files:
            return None
        return await self._verified(work, left.head)

    def _note(self, work: WorkRecord, changes: Changes, head: str) -> None:
        redact = self._context.redact
        work.delivery = replace(
            work.delivery,
            head=head,
            tree=changes.tree,
            base_commit=changes.base_commit,
            commits=changes.commits,
            behind=changes.behind,
            files_changed=len(changes.files),
            added=sum(file.added or 0 for file in changes.files),
            removed=sum(file.removed or 0 for file in changes.files),
            files=tuple(
                replace(file, path=redact(file.path)) for file in changes.files[:FILES_SHOWN]
            ),
        )

    async def _verified(self, work: WorkRecord, head: str) -> WorkFault | None:
        known = work.delivery.evidence
        if known is None or known.commit != head or not known.ok:
            evidence = await verify(
                self._job,
                self._context,
                self._reporter,
                self._workspace,
                head,
                await self._remote.access(),
            )
            work.delivery = replace(work.delivery, evidence=evidence)
            if (fault := about_verification(evidence)) is not None:
                return fault
        env = self._environment.for_git()
        place = await secret_in(self._context, self._repository, env, head)
        return None if place is None else about_secret(place)
