"""What people say of pull requests, as Gitea's API shows it: reviews, comments, reactions."""

from __future__ import annotations

from typing import Any

from tests.forges.faces import ME, Face, not_found, paged, time_at
from tests.forges.nouns import Remark, there
from tests.trackers.server.exchange import Received, Reply

MOST = 50
_REVIEWS = {"approved": "APPROVED", "changes_requested": "REQUEST_CHANGES", "commented": "COMMENT"}


class GiteaTalk(Face):
    """Reviews, comments and reactions of pull requests."""

    def _paged(self, request: Received, items: list[Any]) -> Reply:
        return paged(request, items, "limit", MOST)

    def _reviewers(self, request: Received, number: str) -> Reply:
        names = request.json["reviewers"]
        if unknown := [name for name in names if name not in self.hosted.people]:
            return not_found(f"user does not exist [name: {', '.join(unknown)}]")
        self.one(number).reviewers += names
        return Reply(status=201, body=[])

    def _reviews(self, request: Received, number: str) -> Reply:
        """Show reviews, among them one for what was said of the diff."""
        one = self.one(number)
        shown = [
            {
                "id": said.id,
                "user": self.user(said.author),
                "state": _REVIEWS.get(said.state, "APPROVED"),
                "dismissed": said.state == "dismissed",
                "body": said.body,
                "commit_id": said.head,
                "comments_count": 0,
            }
            for said in one.opinions
        ]
        shown += [  # those that were asked for, too
            {
                "id": 9000 + at,
                "user": self.user(name),
                "state": "REQUEST_REVIEW",
                "dismissed": False,
                "body": "",
                "comments_count": 0,
            }
            for at, name in enumerate(one.reviewers, 1)
        ]
        shown += [
            {
                "id": thread.id,
                "user": self.user(thread.notes[0].author),
                "state": "COMMENT",
                "dismissed": False,
                "body": "",
                "commit_id": thread.head,
                "comments_count": len(thread.notes),
            }
            for thread in one.threads
        ]
        return self._paged(request, shown)

    def _review_comments(self, request: Received, number: str, id_: str) -> Reply:
        del request
        one = self.one(number)
        thread = there({thread.id: thread for thread in one.threads}, id_)
        return Reply(
            body=[
                self._shown_comment(note)
                | {
                    "path": thread.path,
                    "position": 0 if thread.removed else thread.line,
                    "original_position": thread.line if thread.removed else 0,
                    "resolver": self.user("ann") if thread.resolved else None,
                }
                for note in thread.notes
            ]
        )

    def _shown_comment(self, note: Remark) -> dict[str, Any]:
        user = self.user(note.author)
        if note.bot:
            user["id"] = -2
        told = {"id": note.id, "body": note.body, "user": user}
        return told | {"created_at": time_at(note.at)}

    def _comments(self, request: Received, number: str) -> Reply:
        comments = self.one(number).comments
        return self._paged(request, [self._shown_comment(note) for note in comments])

    def _timeline(self, request: Received, number: str) -> Reply:
        one = self.one(number)
        notes = {note.id: note for note in one.comments}
        shown = [
            {"type": kind} | (self._shown_comment(notes[id_]) if id_ in notes else {"id": id_})
            for id_, kind in one.timeline
        ]
        return self._paged(request, shown)

    def _comment(self, request: Received, number: str) -> Reply:
        self.one(number)
        made = self.hosted.add_comment(int(number), ME, request.json["body"])
        return Reply(status=201, body=self._shown_comment(made))

    def _react(self, request: Received, id_: str) -> Reply:
        requests = self.hosted.requests
        found = {note.id: note for one in requests for note in one.comments}
        found |= {n.id: n for one in requests for t in one.threads for n in t.notes}
        note, content = there(found, id_), request.json["content"]
        known = content in note.reactions
        note.reactions += [] if known else [content]
        return Reply(status=200 if known else 201, body={"content": content})
