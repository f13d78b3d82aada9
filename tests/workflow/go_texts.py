"""Templates of Go, made at random by its grammar, and what they are given."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.workflow.prompts import PromptContext

WHEN = datetime(2026, 11, 1, tzinfo=UTC)
CONTEXT = PromptContext(
    issue=Issue(
        id=IssueId("7"),
        identifier="ABC-7",
        title="A <b>title",
        description="Do it",
        state="To Do",
        priority=2,
        labels=("bug", "UI"),
        comments=(
            Comment(author="ann", body="first", created_at=WHEN),
            Comment(author="bob", body="second"),
        ),
        blocked_by=(Blocker(identifier="ABC-2", id=IssueId("2"), state="Done"),),
    ),
    attempt=1,
    turn_number=2,
    max_turns=5,
    is_continuation=True,
    workspace_path="/w",
    host="local",
)
DATA = {
    "issue": {
        "id": "7",
        "identifier": "ABC-7",
        "title": "A <b>title",
        "description": "Do it",
        "state": "To Do",
        "priority": 2,
        "url": "",
        "labels": ["bug", "UI"],
        "assignee": "",
        "issue_type": "",
        "branch_name": "",
        "parent": None,
        "comments": [
            {"author": "ann", "body": "first", "created_at": "2026-11-01T00:00:00Z"},
            {"author": "bob", "body": "second", "created_at": ""},
        ],
        "blocked_by": [{"identifier": "ABC-2", "id": "2", "state": "Done"}],
    },
    "attempt": 1,
    "run": {"turn_number": 2, "max_turns": 5, "is_continuation": True},
    **dict.fromkeys(
        ("ci_failure", "review_comments", "bot_review_comments", "merge_conflict", "label_fix")
    ),
}
"""What Go's program would give the template in this context."""

_TEXTS = ["title", "description", "state", "identifier", "url", "assignee", "branch_name"]
_LITERAL = ["a", " b\n", "{% x %}", "{# y #}", "%} #}", "\n\n", "{ }"]
_NUMBERS = [".attempt", "$.run.max_turns", ".run.turn_number", ".issue.priority", "3", "-1"]


class TemplateMaker:
    """Writes templates; ``names`` are the variables that are declared at the place."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._names: list[str] = []
        self._root = True

    def template(self, depth: int = 3) -> str:
        """Return some text with actions, which declare nothing for what follows."""
        known, root = list(self._names), self._root
        made = "".join(self._piece(depth) for _ in range(self._random.randint(1, 4)))
        self._names, self._root = known, root
        return made

    def _piece(self, depth: int) -> str:
        kinds = ["text", "shown", "shown", "set", "again", "comment"]
        kinds += ["if", "if", "with", "range", "range", "count"] if depth else []
        match self._random.choice(kinds):
            case "text":
                return self._random.choice(
                    ["a", " b\n", "{% x %}", "{# y #}", "%} #}", "\n\n", "{ }"]
                )
            case "shown":
                shown = [self._text(2), self._number(2), f"(not {self._truth(1)})"]
                return self._action(self._random.choice(shown))
            case "set":
                name = self._random.choice(["$x", "$y", "$issue", "$loop"])
                made = self._action(f"{name} := {self._text(2)}")
                self._names.append(name)
                return made
            case "again" if self._names:
                return self._action(f"{self._random.choice(self._names)} = {self._text(1)}")
            case "if":
                made = self._action(f"if {self._truth(2)}") + self.template(depth - 1)
                if self._random.random() < 0.3:
                    made += self._action(f"else if {self._truth(1)}") + self.template(depth - 1)
                if self._random.random() < 0.5:
                    made += self._action("else") + self.template(depth - 1)
                return made + self._action("end")
            case "with":
                return self._with(depth)
            case "range":
                return self._range(depth)
            case "count":
                around, self._root = self._root, False
                made = self._action("range $n := .run.max_turns" if around else "range $n := 2")
                self._names.append("$n")
                made += self._action("$n") + self.template(0) + self._action("end")
                self._names.remove("$n")
                self._root = around
                return made
        return self._random.choice(["{{/* said */}}", "{{- /* #} */ -}}"])

    def _with(self, depth: int) -> str:
        subject = self._text(1)
        around, self._root = self._root, False
        made = self._action(f"with {subject}") + self._action(".") + self.template(depth - 1)
        self._root = around
        if self._random.random() < 0.5:
            made += self._action("else") + self.template(depth - 1)
        return made + self._action("end")

    def _range(self, depth: int) -> str:
        known, around = list(self._names), self._root
        head, items, inside = self._random.choice(
            [
                ("range ", "$.issue.labels", "."),
                ("range $i, $c := ", "$.issue.comments", ".author"),
                ("range $c := ", "$.issue.comments", "$c.created_at"),
                ("range $i, $l := ", "$.issue.labels", "$i"),
                ("range ", "$.issue.blocked_by", "lower .state"),
            ]
        )
        self._names += [name for name in ("$i", "$l") if name in head]
        self._root = False
        made = self._action(head + items) + self._action(inside) + self.template(depth - 1)
        self._names, self._root = known, around
        if self._random.random() < 0.2:
            made += self._action("else") + self.template(depth - 1)
        return made + self._action("end")

    def _action(self, content: str) -> str:
        left = self._random.choice(["{{", "{{ ", "{{ ", "{{- "])
        right = self._random.choice(["}}", " }}", " }}", " -}}"])
        return f"{left}{content}{right}"

    def _text(self, depth: int) -> str:
        simple = [f"$.issue.{self._random.choice(_TEXTS)}", '"a \\"q\\" }}"', "`raw {{`"]
        simple += [name for name in self._names if name in ("$x", "$y", "$issue", "$loop", "$l")]
        if not depth:
            return self._random.choice(simple)
        inner = self._random.choice([self._text, self._number])(0)
        text, other = self._text(depth - 1), self._text(depth - 1)
        return self._random.choice(
            [
                self._random.choice(simple),
                f"({text} | lower)",
                f'(join ", " {self._list(0)})',
                f'({self._list(0)} | join "-")',
                f'(printf "%s is %v, %q" {text} {inner} $.issue.title)',
                f'(printf "%d%% %5d|%-8s|" {self._number(0)} {self._number(0)} {self._text(0)})',
                f"(print {text} {inner} {other})",
                f"(println {text} {other})",
                f"(or {text} {other})",
                f"(and {text} {other})",
                f"(index {self._list(0)} 0)",
                f"(slice {text} 0 0)",
                f"(html {text})",
            ]
        )

    def _number(self, depth: int) -> str:
        numbers = [each if self._root else each.replace(".", "$.", 1) for each in _NUMBERS]
        numbers = [each.replace("$$", "$").replace("$.$", "$") for each in numbers]
        simple = self._random.choice(numbers)
        return f"(len {self._list(0)})" if depth and self._random.random() < 0.3 else simple

    def _list(self, _: int) -> str:
        return "$.issue.labels"

    def _truth(self, depth: int) -> str:
        text, other, number = self._text(0), self._text(0), self._number(1)
        if not depth:
            return self._random.choice([text, number, "$.run.is_continuation", "$.ci_failure"])
        one, two = self._truth(depth - 1), self._truth(depth - 1)
        return self._random.choice(
            [
                one,
                f"(not {one})",
                f"(and {one} {two})",
                f"(or {one} {two})",
                f"(eq {text} {other})",
                f"(eq {text} {other} {self._text(0)})",
                f"(ne {text} {other})",
                f"(gt {number} {self._number(0)})",
                f"(le {number} 3)",
                f"({text} | eq {other})",
            ]
        )
