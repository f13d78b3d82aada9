"""What the faces of a forge have in common: routes, pages, times, and the account that asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.forges.hosted import HostedRepository
from tests.forges.nouns import Absent, Request
from tests.trackers.server.exchange import Received, Reply

ME = "sortie-bot"
"""Whose token it is."""

_BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Handler = Callable[..., Reply]


def time_at(count: int) -> str:
    """Return the time of a change."""
    return (_BEGIN + timedelta(seconds=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


def not_found(message: str = "404 Not Found") -> Reply:
    """Return the answer about what is not there."""
    return Reply(status=404, body={"message": message}, sound=False)


def refused(status: int, message: str) -> Reply:
    """Return a refusal."""
    return Reply(status=status, body={"message": message}, sound=False)


def paged(
    request: Received, items: Sequence[Any], size: str = "per_page", most: int = 100
) -> Reply:
    """Return a page of a list, with a link to the next one."""
    count = min(int(request.query.get(size, most)), most)
    page = int(request.query.get("page", 1))
    headers = {"X-Total-Count": str(len(items))}
    if page * count < len(items):
        kept = [f"{key}={value}" for key, value in request.pairs if key != "page"]
        query = "&".join([*kept, f"page={page + 1}"])
        headers["Link"] = f'<{request.url}?{query}>; rel="next"'
    return Reply(body=list(items[(page - 1) * count : page * count]), headers=headers)


class Face:
    """A repository as one kind of forge shows it over HTTP.

    ``routes`` are methods, patterns of paths below the repository, the handler, and the parameters
    that its query may have: a forge ignores others without a word, so that they are an error here.
    """

    prefix = ""
    requests = "/pulls"

    def __init__(self, hosted: HostedRepository) -> None:
        self.hosted = hosted
        self.routes: list[tuple[str, str, Handler, str]] = []

    def root(self) -> str:
        """Return the path of the repository."""
        raise NotImplementedError

    def answer(self, request: Received) -> Reply:
        """Answer a request with a good token."""
        path = request.path.removeprefix(self.prefix)
        if not path.startswith(self.root()):
            return self.outside(request, path)
        path = path.removeprefix(self.root())
        for method, pattern, do, known in self.routes:
            found = re.fullmatch(pattern, path)
            if request.method not in method.split("|") or found is None:
                continue
            names = {*known.split(), "page", "per_page", "limit"}
            unknown = [key for key, _ in request.pairs if key not in names]
            assert not unknown, f"{request}: {unknown} would be ignored"
            try:
                return do(request, *found.groups())
            except Absent:
                return not_found()
        return not_found()

    def outside(self, request: Received, path: str) -> Reply:
        """Answer what is not about the repository."""
        del request, path
        return not_found()

    def one(self, number: str) -> Request:
        """Return a pull request by its number. Raises Absent."""
        return self.hosted.request(int(number))

    def opened(self, request: Received, branch: str, base: str) -> Request | Reply:
        """Return a new pull request, or why there is none; the rest of it is the face's."""
        hosted, body = self.hosted, request.json
        heads = hosted.git.heads()
        if branch not in heads or base not in heads:
            return refused(422, "Validation Failed: head is invalid")
        if heads[branch] == heads[base]:
            return refused(422, f"Validation Failed: No commits between {base} and {branch}")
        if any(one.branch == branch and one.state == "open" for one in hosted.requests):
            return refused(409, f"A pull request already exists for {branch}.")
        title, text = body["title"], body.get("body") or body.get("description") or ""
        one = Request(len(hosted.requests) + 1, title, text, branch, base)
        for mark in ("Draft: ", "WIP: "):
            if title.startswith(mark):
                one.draft, one.title = True, title.removeprefix(mark)
        one.draft = one.draft or bool(body.get("draft"))
        hosted.requests.append(one)
        hosted.touch(one)
        return one

    def change(self, one: Request, body: dict[str, Any]) -> None:
        """Change title and text."""
        one.title = body.get("title", one.title).removeprefix("Draft: ").removeprefix("WIP: ")
        one.body = body.get("body", body.get("description", one.body))
        self.hosted.touch(one)

    def user(self, name: str, bot: bool = False) -> dict[str, Any]:
        """Return somebody as the forge shows them."""
        del bot
        people = self.hosted.people
        number = people.index(name) + 1 if name in people else 90
        return {"id": number, "login": name, "username": name}
