"""What people say of merge requests, as GitLab's API shows it: reviews, discussions, notes."""

from __future__ import annotations

from typing import Any

from tests.forges.faces import ME, Face, not_found, paged, time_at
from tests.forges.nouns import Remark, Request, there
from tests.trackers.server.exchange import Received, Reply

_REVIEWS = {"changes_requested": "requested_changes", "commented": "reviewed"}


class GitLabTalk(Face):
    """Reviews, discussions and notes of merge requests."""

    def reviewers(self, one: Request) -> list[dict[str, Any]]:
        """Return what reviewers think."""
        states = {said.author: said.state for said in one.opinions}
        states |= {who: said.state for who, said in self.hosted.opinions(one).items()}
        return [
            {"user": self.user(who), "state": _REVIEWS.get(state, state)}
            for who, state in states.items()
        ]

    def approvals(self, one: Request) -> dict[str, Any]:
        """Return who has approved."""
        opinions = self.hosted.opinions(one)
        approved = [who for who, said in opinions.items() if said.state == "approved"]
        return {
            "approved": len(approved) >= self.hosted.approvals,
            "approved_by": [{"user": self.user(who)} for who in approved],
        }

    def _reviewers(self, request: Received, number: str) -> Reply:
        return paged(request, self.reviewers(self.one(number)))

    def _approvals(self, request: Received, number: str) -> Reply:
        del request
        return Reply(body=self.approvals(self.one(number)))

    def talk(self, one: Request) -> list[dict[str, Any]]:
        """Return discussions: plain comments, what GitLab notes itself, threads of the diff."""
        noted = Remark(99, "ann", "assigned to @bob")
        system = {"id": "s1", "individual_note": True, "notes": [self._shown_note(noted, True)]}
        reviewed = [
            {
                "id": f"r{said.id}",
                "individual_note": True,
                "notes": [self._shown_note(Remark(5000 + said.id, said.author, said.state), True)],
            }
            for said in one.opinions
        ]
        plain = [
            {"id": f"c{said.id}", "individual_note": True, "notes": [self._shown_note(said)]}
            for said in one.comments
        ]
        threads = []
        for thread in one.threads:
            position = {
                "new_path": thread.path,
                "new_line": thread.line,
                "head_sha": thread.head,
            }
            of_diff = {"resolvable": True, "resolved": thread.resolved, "position": position}
            notes = [self._shown_note(note) | of_diff for note in thread.notes]
            threads.append({"id": f"d{thread.id}", "individual_note": False, "notes": notes})
        return [system, *reviewed, *plain, *threads]

    def _shown_note(self, note: Remark, system: bool = False) -> dict[str, Any]:
        return {
            "id": note.id,
            "body": note.body,
            "author": self.user(note.author),
            "created_at": time_at(note.id),
            "updated_at": time_at(note.id),
            "system": system,
            "resolvable": False,
        }

    def _discussions(self, request: Received, number: str) -> Reply:
        return paged(request, self.talk(self.one(number)))

    def _discussion(self, request: Received, number: str, id_: str) -> Reply:
        del request
        found = [item for item in self.talk(self.one(number)) if item["id"] == id_]
        return Reply(body=found[0]) if found else not_found()

    def _answer_in(self, request: Received, number: str, id_: str) -> Reply:
        thread = {f"d{thread.id}": thread for thread in self.one(number).threads}.get(id_)
        if thread is None:
            return not_found()
        note = self.hosted.say_in(int(number), thread, ME, request.json["body"])
        return Reply(status=201, body=self._shown_note(note))

    def _notes(self, request: Received, number: str) -> Reply:
        comments = self.one(number).comments
        return paged(request, [self._shown_note(note) for note in reversed(comments)])

    def _note(self, request: Received, number: str) -> Reply:
        note = self.hosted.add_comment(int(self.one(number).number), ME, request.json["body"])
        return Reply(status=201, body=self._shown_note(note))

    def _award(self, request: Received, number: str, id_: str) -> Reply:
        one = self.one(number)
        notes = [*one.comments, *(note for thread in one.threads for note in thread.notes)]
        note = there({note.id: note for note in notes}, id_)
        if request.json["name"] in note.reactions:
            return not_found("404 Award Emoji Name has already been taken Not Found")
        note.reactions.append(request.json["name"])
        return Reply(status=201, body={"id": 1, "name": request.json["name"]})
