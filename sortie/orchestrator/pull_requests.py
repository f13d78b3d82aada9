"""Effects at the forge: looks at watched pull requests, errands, merges.

Rule: what people have written is data. It is freed of what no reader sees, of secrets and of
excess before the scheduler is told of it.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from sortie.config.reactions import ReactionsSettings
from sortie.forges import NOTHING_CHANGED, Forge
from sortie.model import (
    LOCAL,
    Issue,
    IssueId,
    LostAnswer,
    PullRequest,
    TrackerError,
    TrackerErrorKind,
    cut,
    same_state,
)
from sortie.model.outside import cleaned
from sortie.model.pull_requests import Note, PullRequestState, Review, ReviewThread
from sortie.model.watches import (
    Acknowledgement,
    BranchDeletion,
    CheckRerun,
    IssueMove,
    LabelChange,
    MergeCancellation,
    PullRequestComment,
    ThreadReply,
)
from sortie.model.webhooks import Part
from sortie.orchestrator.context import OrchestratorContext
from sortie.scheduler import Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.merge_gates import MergeView, first_closed_for_merge
from sortie.telemetry import facts

Tell = Callable[[Event], None]

NOTE_SHOWN = 4000
"""Characters of a note that are kept."""

NOTES_SHOWN = 100
"""Reviews, threads, comments and checks of a pull request that are kept, the newest."""

_OURS = re.compile(r"^<!-- sortie:", re.MULTILINE)


def _forge(context: OrchestratorContext, rule: str) -> Forge:
    """Return the forge that a rule's settings name. Raises TrackerError where there is none."""
    remote = context.run_context_for(LOCAL, rule).remote
    if remote is None or remote.forge is None:
        raise TrackerError(TrackerErrorKind.INVALID, "the settings name no forge any more")
    return remote.forge


def _settings(context: OrchestratorContext) -> ReactionsSettings:
    return context.run_context_for(LOCAL, "").settings.reactions


async def look(context: OrchestratorContext, question: do.LookAtPullRequests, tell: Tell) -> None:
    """Look at pull requests and report how they stand."""
    asked, began = frozenset(question.pull_requests), context.wall()
    pause, error = 0.0, None
    seen: dict[IssueId, PullRequestState] = {}
    writers: frozenset[str] = frozenset()
    try:
        found, writers = await _looked(context, question)
        seen = {
            issue_id: found[request.id]
            for issue_id, request in question.pull_requests.items()
            if request.id in found
        }
    except TrackerError as exc:
        pause, error = exc.retry_after or 0.0, str(exc)
    except Exception as exc:  # the edge: an adapter may have bugs
        context.publish(facts.AdapterCrashed(where="look", traceback=traceback.format_exc()))
        error = f"the look crashed: {type(exc).__name__}"
    seconds = max(0.0, context.wall() - began)
    context.publish(facts.PullRequestsLookedAt(count=len(asked), seconds=seconds, error=error))
    tell(ev.PullRequestsSeen(question.token, asked, seen, writers, error, pause))


async def _looked(
    context: OrchestratorContext, question: do.LookAtPullRequests
) -> tuple[Mapping[str, PullRequestState], frozenset[str]]:
    """Read what has changed by deliveries as of now, and all else as the forge shows it."""
    asked = question.pull_requests
    changed = {asked[issue_id].id: part for issue_id, part in question.named.items()}
    requests = tuple(asked.values())
    return await _seen(context, question.rule, requests, changed=changed, told=question.told)


async def _seen(
    context: OrchestratorContext,
    rule: str,
    requests: tuple[PullRequest, ...],
    *,
    afresh: bool = False,
    changed: Mapping[str, Part] = NOTHING_CHANGED,
    told: bool = False,
) -> tuple[Mapping[str, PullRequestState], frozenset[str]]:
    """Return how pull requests stand, and who of those who have written something may push."""
    forge, redact = _forge(context, rule), context.run_context_for(LOCAL, "").redact
    raw = await forge.look(requests, afresh=afresh, changed=changed, told=told)
    found = {name: tidied(state, redact) for name, state in raw.items()}
    authors = {author for state in found.values() for author in _weighty(state)}
    writers = [author for author in sorted(authors) if await forge.may_write(author)]
    return found, frozenset(writers)


def tidied(state: PullRequestState, redact: Callable[[str], str]) -> PullRequestState:
    """Return a state whose texts hold nothing that no reader sees, no secret and no excess."""

    def note(one: Note) -> Note:
        return replace(one, own=_OURS.search(one.body) is not None, body=clean(one.body, redact))

    def thread(one: ReviewThread) -> ReviewThread:
        kept = (*one.notes[:1], *one.notes[1:][-NOTES_SHOWN:])  # a reply is to the first
        return replace(one, notes=tuple(map(note, kept)))

    def review(one: Review) -> Review:
        return replace(one, body=clean(one.body, redact))

    request = state.pull_request
    return replace(
        state,
        pull_request=replace(request, title=redact(cut(request.title)), body=""),
        reviews=tuple(map(review, state.reviews[-NOTES_SHOWN:])),
        threads=tuple(map(thread, state.threads[-NOTES_SHOWN:])),
        comments=tuple(map(note, state.comments[-NOTES_SHOWN:])),
        checks=state.checks[: NOTES_SHOWN * 5],
    )


def clean(text: str, redact: Callable[[str], str]) -> str:
    """Return what people have written as they mean it to be read."""
    return cut(redact(cleaned(text)).strip(), NOTE_SHOWN)


def _weighty(state: PullRequestState) -> Iterator[str]:
    """Yield the authors whose right to push decides something."""
    yield from (one.author for one in state.reviews if one.state != "commented" and not one.bot)
    for thread in state.threads:
        if not thread.resolved:
            yield from (note.author for note in thread.notes if not note.bot)
    for note in state.comments:
        if note.body.startswith("/sortie") and not note.own and not note.bot:
            yield note.author


async def run_errand(context: OrchestratorContext, question: do.RunErrand, tell: Tell) -> None:
    """Do something at the forge or the tracker, and report it."""
    error, again = None, False
    try:
        await _done(context, question)
    except TrackerError as exc:
        error = str(exc)
        waits = exc.retry_after is not None or isinstance(exc, LostAnswer)
        again = waits or exc.kind.is_outage
    except Exception as exc:  # the edge: an adapter may have bugs
        context.publish(facts.AdapterCrashed(where="errand", traceback=traceback.format_exc()))
        error = f"it crashed: {type(exc).__name__}"
    tell(ev.ErrandDone(question.issue.id, question.token, error, again))


async def _done(context: OrchestratorContext, question: do.RunErrand) -> None:
    request, errand = question.pull_request, question.errand
    if isinstance(errand, IssueMove):
        await _move(context, question.issue, errand.state)
        return
    forge = _forge(context, question.rule)
    match errand:
        case ThreadReply(thread=thread, body=body, key=key):
            await forge.reply(request, thread, body, key)
        case PullRequestComment(body=body, key=key):
            await forge.comment(request, body, key)
        case Acknowledgement(note=note):
            await forge.acknowledge(request, note)
        case LabelChange(add=add, remove=remove):
            await forge.label(request, add=add, remove=remove)
        case CheckRerun(check=check):
            await forge.rerun(check)
        case MergeCancellation():
            await forge.cancel_merge(request)
        case BranchDeletion():
            if request.branch != request.base:
                await forge.delete_branch(request.branch)


async def _move(context: OrchestratorContext, issue: Issue, state: str) -> None:
    """Move an issue wherever it stands; one that is there already has its move completed."""
    present = await _present(context, issue)
    if same_state(present.state, state):
        await context.tracker.complete_move(present)
        return
    await context.tracker.transition(present, state)


async def _present(context: OrchestratorContext, issue: Issue) -> Issue:
    """Return an issue as it stands now. Raises TrackerError where that is not known."""
    answer = await context.tracker.fetch_by_ids({issue.id})
    if issue.id in answer.failed:
        raise answer.failed[issue.id]
    if not answer.issues:
        kind = TrackerErrorKind.NOT_FOUND
        raise TrackerError(kind, f"the tracker does not know {issue.identifier}")
    return answer.issues[0]


async def merge(context: OrchestratorContext, question: do.MergePullRequest, tell: Tell) -> None:
    """Look at a pull request once more, merge it if it is still as it was judged, and report it."""
    outcome: ev.MergeOutcome
    try:
        outcome, message = await _merged(context, question)
    except TrackerError as exc:
        message = str(exc)
        outcome = "failed"
        if exc.kind is TrackerErrorKind.CONFLICT:
            outcome = "not_ready"
        elif exc.retry_after is None and not (exc.kind.is_outage or isinstance(exc, LostAnswer)):
            outcome = "refused"
    except Exception as exc:  # the edge: an adapter may have bugs
        context.publish(facts.AdapterCrashed(where="merge", traceback=traceback.format_exc()))
        outcome, message = "failed", f"it crashed: {type(exc).__name__}"
    tell(ev.MergeTried(question.issue.id, question.token, outcome, message))


async def _merged(
    context: OrchestratorContext, question: do.MergePullRequest
) -> tuple[ev.MergeOutcome, str]:
    forge, settings = _forge(context, question.rule), _settings(context).merge
    if settings is None:
        return "not_ready", "reactions.merge is not set any more"
    states, writers = await _seen(context, question.rule, (question.pull_request,), afresh=True)
    found = states.get(question.pull_request.id)
    if found is None:
        return "not_ready", "the forge does not know it any more"
    request = found.pull_request
    if request.state == "merged":
        return "merged", ""
    if request.head != question.head:
        return "not_ready", "its head is another by now"
    view = MergeView(seen=found, settings=settings, head_age=math.inf, writers=writers)
    closed = first_closed_for_merge(view)
    if closed is not None:
        return "not_ready", closed.reason or ""
    if found.queued:
        return "queued", ""
    present = await _present(context, question.issue)
    handed_off = context.run_context_for(LOCAL, question.rule).settings.tracker.handoff_state
    if handed_off is None or not same_state(present.state, handed_off):
        return "refused", f"its issue stands in {present.state}"
    if not found.has_queue and await forge.bring_up_to_date(request, question.head):
        return "updated", ""
    waits_for = first_closed_for_merge(replace(view, seen=replace(found, automatic=False)))
    if found.has_queue or waits_for is not None:
        try:
            await forge.merge_when_ready(request, question.head, settings.strategy)
        except TrackerError as exc:
            if waits_for is None or exc.kind is not TrackerErrorKind.INVALID:
                raise
            return "not_ready", waits_for.reason or ""
        return "queued", ""
    await forge.merge(request, question.head, settings.strategy)
    return "merged", ""
