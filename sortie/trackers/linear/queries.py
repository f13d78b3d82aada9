"""The GraphQL documents that are sent to Linear; a test holds each against its schema.

Nested lists are asked for with ``pageInfo``, and what is beyond their first page by ``REST_OF``.
No issue is asked for by ``issue(id:)``, which is never null: one that is not there would fail the
whole document.
"""

from __future__ import annotations

LABELS, RELATIONS, COMMENTS = 20, 10, 50
"""How many of each an issue brings along; they count in a request's complexity, found or not."""

_PAGE = "pageInfo { hasNextPage endCursor }"

_BLOCKER = "id identifier title trashed state { name type }"

_ISSUE = f"""
fragment IssueFields on Issue {{
  id identifier title description priority url branchName createdAt updatedAt archivedAt trashed
  team {{ id key }}
  state {{ id name type }}
  creator {{ email name displayName }} botActor {{ name }}
  externalUserCreator {{ name displayName }}
  assignee {{ name displayName }}
  parent {{ identifier }}
  labels(first: {LABELS}) {{ nodes {{ name }} {_PAGE} }}
  inverseRelations(first: {RELATIONS}) {{ nodes {{ type issue {{ {_BLOCKER} }} }} {_PAGE} }}
}}
"""

_COMMENTS = f"""
fragment CommentFields on Issue {{
  comments(first: {COMMENTS}, orderBy: updatedAt) {{
    nodes {{ ...OneComment }}
    {_PAGE}
  }}
}}
"""

_ONE_COMMENT = """
fragment OneComment on Comment {
  id body createdAt updatedAt
  user { email name displayName } botActor { name } externalUser { name displayName }
}
"""

ISSUES = f"""
query SortieIssues($filter: IssueFilter!, $first: Int!, $after: String) {{
  issues(filter: $filter, first: $first, after: $after, orderBy: createdAt) {{
    nodes {{ ...IssueFields }}
    {_PAGE}
  }}
}}
{_ISSUE}"""
"""A page of the issues that a filter finds, without comments and without archived ones."""

CHANGES = f"""
query SortieChanges(
  $listed: IssueFilter!, $changed: IssueFilter!, $first: Int!,
  $withListed: Boolean!, $afterListed: String, $withChanged: Boolean!, $afterChanged: String
) {{
  listed: issues(filter: $listed, first: $first, after: $afterListed, orderBy: createdAt)
    @include(if: $withListed) {{
    nodes {{ ...IssueFields }}
    {_PAGE}
  }}
  changed: issues(
    filter: $changed, first: $first, after: $afterChanged, orderBy: createdAt, includeArchived: true
  ) @include(if: $withChanged) {{
    nodes {{ {_BLOCKER} updatedAt archivedAt }}
    {_PAGE}
  }}
}}
{_ISSUE}"""
"""What has changed: the issues that are in the list, and the bare facts of all that were touched,
by which is known what has left it and which blockers have moved."""

REREAD = f"""
query SortieReread($filter: IssueFilter!, $first: Int!) {{
  issues(filter: $filter, first: $first, includeArchived: true) {{
    nodes {{ ...IssueFields ...CommentFields }}
  }}
}}
{_ISSUE}{_COMMENTS}{_ONE_COMMENT}"""
"""Issues with their comments, archived ones included."""

REREAD_WITH_STATES = f"""
query SortieRereadWithStates($filter: IssueFilter!, $first: Int!) {{
  issues(filter: $filter, first: $first, includeArchived: true) {{
    nodes {{
      ...IssueFields ...CommentFields
      labels(first: {LABELS}) {{ nodes {{ id }} {_PAGE} }}
      team {{ states(first: 250) {{ nodes {{ id name type position }} {_PAGE} }} }}
    }}
  }}
}}
{_ISSUE}{_COMMENTS}{_ONE_COMMENT}"""
"""The same with the states of the issue's team, into one of which it is to be moved, and with the
ids of its labels."""

REST_OF = f"""
query SortieRest(
  $filter: IssueFilter!, $withLabels: Boolean!, $labelsAfter: String,
  $withRelations: Boolean!, $relationsAfter: String, $withComments: Boolean!, $commentsAfter: String
) {{
  issues(filter: $filter, first: 1, includeArchived: true) {{
    nodes {{
      id
      labels(first: 250, after: $labelsAfter) @include(if: $withLabels) {{
        nodes {{ id name }}
        {_PAGE}
      }}
      inverseRelations(first: 250, after: $relationsAfter) @include(if: $withRelations) {{
        nodes {{ type issue {{ {_BLOCKER} }} }}
        {_PAGE}
      }}
      comments(first: 250, after: $commentsAfter, orderBy: updatedAt) @include(if: $withComments) {{
        nodes {{ ...OneComment }}
        {_PAGE}
      }}
    }}
  }}
}}
{_ONE_COMMENT}"""
"""The next pages of what one issue holds."""

PERSON = """
query SortiePerson($email: String!) {
  users(filter: { email: { eqIgnoreCase: $email } }, first: 5, includeDisabled: true) {
    nodes { email active guest app }
  }
}
"""
"""Somebody, by their address."""

HISTORY = f"""
query SortieHistory($filter: IssueFilter!) {{
  issues(filter: $filter, first: 1, includeArchived: true) {{
    nodes {{
      history(first: 100) {{
        nodes {{
          createdAt updatedAt fromTitle updatedDescription
          actor {{ email }} descriptionUpdatedBy {{ email }}
          addedLabels {{ name }} removedLabels {{ name }}
        }}
        {_PAGE}
      }}
    }}
  }}
}}
"""
"""Who has changed labels, title and description of an issue."""

TEAM = f"""
query SortieTeam($key: String!) {{
  teams(filter: {{ key: {{ eqIgnoreCase: $key }} }}, first: 1) {{
    nodes {{
      id key name
      states(first: 250) {{ nodes {{ id name type position }} {_PAGE} }}
    }}
  }}
}}
"""
"""The team of a key, with its states."""

TEAM_KEYS = """
query SortieTeamKeys {
  teams(first: 50) { nodes { key name } }
}
"""

MOVE = f"""
mutation SortieMove($id: String!, $state: String, $add: [String!], $remove: [String!]) {{
  issueUpdate(
    id: $id, input: {{ stateId: $state, addedLabelIds: $add, removedLabelIds: $remove }}
  ) {{
    success
    issue {{ ...IssueFields }}
  }}
}}
{_ISSUE}"""

TEAM_LABELS = """
query SortieLabels($filter: IssueLabelFilter!) {
  issueLabels(filter: $filter, first: 250) {
    nodes { id name isGroup retiredAt team { id } }
  }
}
"""
"""Labels of some names that the issues of a team can have."""

MAKE_LABEL = """
mutation SortieMakeLabel($id: String!, $name: String!, $team: String!) {
  issueLabelCreate(input: { id: $id, name: $name, teamId: $team }) { success }
}
"""

COMMENT = """
mutation SortieComment($id: String!, $issue: String!, $body: String!) {
  commentCreate(
    input: { id: $id, issueId: $issue, body: $body, doNotSubscribeToIssue: true }
  ) {
    success
  }
}
"""

COMMENT_IS_THERE = """
query SortieCommentIsThere($id: ID!) {
  comments(filter: { id: { eq: $id } }, first: 1, includeArchived: true) { nodes { id } }
}
"""

VIEWER = """
query SortieViewer {
  viewer { name displayName admin guest app }
  organization { name urlKey }
}
"""
