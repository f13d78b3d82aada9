"""What is asked of GitHub's GraphQL API about pull requests.

The names in ``CONNECTIONS`` are those of lists that may be longer than a page; each is followed by
its own question.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

THREADS = 10
"""Threads of the first page. GitHub counts the comments of each as a request, found or not, and a
hundred requests as a point: with ten a batch of 25 pull requests costs 4 of 5,000 points an hour,
with a hundred 27."""

_PAGE = "pageInfo { endCursor hasNextPage }"
_AUTHOR = "author { __typename login }"
_NOTES = f"{{ nodes {{ fullDatabaseId {_AUTHOR} body }} {_PAGE} }}"
_REVIEWS = f"{{ nodes {{ fullDatabaseId {_AUTHOR} body state commit {{ oid }} }} {_PAGE} }}"
_THREADS = (
    "{ nodes { id isResolved isOutdated path line originalLine "
    f"comments(first: 30) {_NOTES} }} {_PAGE} }}"
)

_FIELDS = f"""
fragment Fields on PullRequest {{
  id number url state isDraft title body
  headRefOid headRefName baseRefName
  mergeable mergeStateStatus reviewDecision
  isInMergeQueue isMergeQueueEnabled
  autoMergeRequest {{ enabledAt }}
  repository {{ autoMergeAllowed }}
  labels(first: 100) {{ nodes {{ name }} }}
  latestOpinionatedReviews(first: 50) {_REVIEWS}
  latestReviews(first: 50) {_REVIEWS}
  reviewThreads(first: {THREADS}) {_THREADS}
  comments(first: 100) {_NOTES}
}}
"""


def _contexts(number: int, arguments: str) -> str:
    return (
        "commits(last: 1) { nodes { commit { oid statusCheckRollup { "
        f"contexts({arguments}) {{ nodes {{ __typename\n"
        f"      ... on CheckRun {{ name status conclusion url permalink "
        f"isRequired(pullRequestNumber: {number}) }}\n"
        f"      ... on StatusContext {{ context state targetUrl "
        f"isRequired(pullRequestNumber: {number}) }}\n"
        f"    }} {_PAGE} }} }} }} }} }}"
    )


def states_query(numbers: Sequence[int]) -> str:
    """Return the question for pull requests with these numbers, whose ids are ``$p0`` and so on."""
    variables = ", ".join(f"$p{at}: ID!" for at in range(len(numbers)))
    nodes = "\n".join(
        f"  p{at}: node(id: $p{at}) {{ ...Fields ... on PullRequest {{\n"
        f"    {_contexts(number, 'first: 100')}\n  }} }}"
        for at, number in enumerate(numbers)
    )
    return f"query PullRequests({variables}) {{\n{nodes}\n}}\n{_FIELDS}"


class Connection(Struct, frozen=True, kw_only=True):
    """A list in pages: where it is in its node, and how more of it is asked for."""

    type: str
    path: tuple[str | int, ...]
    selection: str

    def query(self, number: int) -> str:
        """Return the question for the page behind ``$after`` of the node ``$id``."""
        selection = self.selection or _contexts(number, "first: 100, after: $after")
        return (
            "query More($id: ID!, $after: String!) {\n"
            f"  node(id: $id) {{ ... on {self.type} {{ {selection} }} }}\n}}"
        )


CONTEXTS = Connection(
    type="PullRequest",
    path=("commits", "nodes", 0, "commit", "statusCheckRollup", "contexts"),
    selection="",
)
CONNECTIONS = (
    CONTEXTS,
    *(
        Connection(
            type="PullRequest",
            path=(name,),
            selection=f"{name}(first: {size}, after: $after) {fields}",
        )
        for name, size, fields in (
            ("latestOpinionatedReviews", 100, _REVIEWS),
            ("latestReviews", 100, _REVIEWS),
            ("reviewThreads", 50, _THREADS),
            ("comments", 100, _NOTES),
        )
    ),
)
THREAD_NOTES = Connection(
    type="PullRequestReviewThread",
    path=("comments",),
    selection=f"comments(first: 100, after: $after) {_NOTES}",
)

THREAD = f"""
query Thread($id: ID!) {{
  node(id: $id) {{ ... on PullRequestReviewThread {{ id comments(first: 100) {_NOTES} }} }}
}}
"""

MERGING = """
query Merging($id: ID!) {
  node(id: $id) { ... on PullRequest {
    headRefOid isInMergeQueue isMergeQueueEnabled autoMergeRequest { enabledAt }
  } }
}
"""

ENABLE_AUTO_MERGE = """
mutation EnableAutoMerge($id: ID!, $head: GitObjectID!, $method: PullRequestMergeMethod!) {
  enablePullRequestAutoMerge(
    input: { pullRequestId: $id, expectedHeadOid: $head, mergeMethod: $method }
  ) { pullRequest { id } }
}
"""

ENQUEUE = """
mutation Enqueue($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: { pullRequestId: $id, expectedHeadOid: $head }) {
    mergeQueueEntry { id }
  }
}
"""

DISABLE_AUTO_MERGE = """
mutation DisableAutoMerge($id: ID!) {
  disablePullRequestAutoMerge(input: { pullRequestId: $id }) { pullRequest { id } }
}
"""

DEQUEUE = """
mutation Dequeue($id: ID!) {
  dequeuePullRequest(input: { id: $id }) { mergeQueueEntry { id } }
}
"""
