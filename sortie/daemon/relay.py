"""A thread that brings requests to the leaders of workflows, and answers those put to this process.

Rule 1: it has a connection of its own: a lease is renewed whatever becomes of requests.
Rule 2: a request is answered within ``LIMIT`` seconds, also where nothing is known of it but that.
Rule 3: what a workflow's leader is asked is carried out while its lease is valid, and at most once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

import psycopg
import trio
from msgspec.structs import replace

from sortie.daemon.server_thread import ServerThread
from sortie.resources.lease import Lease, boot_time
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_relay import ANSWERS, REQUESTS, PostgresRelay
from sortie.store.postgres_shared import bring_up_to_date
from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered, Withdrawn

LIMIT = 7.0
"""Seconds that a leader has for an answer; commands on the same machine wait for 10."""

GRACE = 1.5
"""Seconds more in which it is asked what became of a request without an answer."""

LOOK = 2.0
"""Seconds between two looks for requests and answers: behind the messages of the server."""

IDLE_LOOK = 60.0


class _Question:
    """A request of this process that waits for its answer, or for what is known of it."""

    def __init__(self, request: RelayedRequest) -> None:
        self.request = request
        self.leader = ""
        self.is_withdrawn = False
        self.is_over = False
        self.found: RelayedAnswer | Unanswered | None = None
        self.done = trio.Event()


Served = tuple[Lease, Callable[[RelayedRequest], object]]
"""The lease of a workflow that this process leads, and what is told its requests in the loop."""


class Relay(ServerThread):
    """The requests of this process, whose id is ``daemon``, on one database; a leader has ``limit``
    seconds for an answer."""

    def __init__(self, address: PostgresAddress, daemon: str, limit: float = LIMIT) -> None:
        super().__init__("sortie-relay", address)
        self._limit = limit
        self._relay = PostgresRelay(self.connection, daemon)
        self._loop = trio.lowlevel.current_trio_token()
        self._asked: dict[str, _Question] = {}
        self._put: set[str] = set()
        self._served: dict[str, Served] = {}
        self._answers: list[tuple[RelayedRequest, RelayedAnswer]] = []
        self._is_told = False

    async def ask(self, request: RelayedRequest) -> RelayedAnswer:
        """Have the leader of a workflow answer a request. Raises Unanswered."""
        request = replace(request, id=uuid.uuid4().hex, token=None)
        question = _Question(request)
        with self.guard:
            self._asked[request.id] = question
        self.wake()
        try:
            with trio.move_on_after(self._limit):
                await question.done.wait()
            if question.found is None:
                question.is_withdrawn = True
                self.wake()
                with trio.move_on_after(GRACE):
                    await question.done.wait()
            if question.found is None:
                raise Unanswered(_unknown(question, "the database does not answer"))
        finally:
            question.is_over = True
            self.wake()
        if isinstance(question.found, Unanswered):
            raise question.found
        return question.found

    def serve(self, lease: Lease, tell: Callable[[RelayedRequest], object]) -> None:
        """Take the requests of a workflow for as long as its lease is the newest; ``tell`` is
        called in the loop."""
        with self.guard:
            self._served[lease.workflow] = (lease, tell)
        self.wake()

    def serve_no_more(self, lease: Lease) -> None:
        """Leave the requests of a workflow to its next leader."""
        with self.guard:
            if self._served.get(lease.workflow, (None,))[0] is lease:
                del self._served[lease.workflow]

    def answer(self, request: RelayedRequest, answer: RelayedAnswer) -> None:
        """Answer a request that was taken."""
        with self.guard:
            self._answers.append((request, answer))
        self.wake()

    def _end(self) -> None:
        self._send_answers()

    def _round(self) -> float:
        self._read_messages()
        self._is_told = False  # each round looks at everything
        self._send_answers()
        self._ask_questions()
        self._fetch_answers()
        self._take_requests()
        pause = LOOK if self._put or self._served else IDLE_LOOK
        return 0.0 if self._is_told else pause

    def _begin_session(self) -> None:
        bring_up_to_date(self.connection)
        self.connection.execute("SET application_name = 'sortie relay'")
        self.connection.live().add_notify_handler(self._note_message)
        self.connection.execute(f"LISTEN {REQUESTS}; LISTEN {ANSWERS}")
        self._relay.forget_the_old()

    def _read_messages(self) -> None:
        connection = self.connection.live().pgconn
        connection.consume_input()
        while connection.notifies() is not None:
            pass

    def _note_message(self, _message: object) -> None:
        """Look again soon: a message may come with the answer to a statement."""
        self._is_told = True

    def _send_answers(self) -> None:
        while self._answers:
            self._relay.answer(*self._answers[0])
            with self.guard:
                self._answers.pop(0)

    def _ask_questions(self) -> None:
        for question in self._questions():
            id_ = question.request.id
            if question.is_over:
                self._forget(id_)
                continue
            if id_ not in self._put and question.is_withdrawn:
                self._finish(question, Unanswered("the database is slow; nothing was done"))
            elif id_ not in self._put:
                self._put.add(id_)  # first: what the server has may be more than is known here
                leader = self._relay.put(question.request, self._limit)
                if leader is None:
                    self._finish(question, Unanswered("no daemon leads this workflow now"))
                else:
                    question.leader = leader
            elif question.is_withdrawn:
                found = self._relay.withdraw(id_)
                if isinstance(found, Withdrawn):
                    self._finish(question, _what_is_known(question, found))
                else:
                    self._finish(question, found)

    def _fetch_answers(self) -> None:
        waiting = [id_ for id_ in self._put if id_ in self._asked]
        if waiting:
            for id_, answer in self._relay.answers(waiting).items():
                self._finish(self._asked[id_], answer)

    def _take_requests(self) -> None:
        with self.guard:
            served = {lease.token: (lease, tell) for lease, tell in self._served.values()}
        valid = [token for token, (lease, _) in served.items() if lease.valid_until > boot_time()]
        if valid:
            for request in self._relay.take(valid):
                assert request.token is not None
                _, tell = served[request.token]
                self._call(tell, request)

    def _questions(self) -> list[_Question]:
        with self.guard:
            return list(self._asked.values())

    def _finish(self, question: _Question, found: RelayedAnswer | Unanswered) -> None:
        self._forget(question.request.id)

        def tell() -> None:
            question.found = found
            question.done.set()

        self._call(tell)

    def _forget(self, id_: str) -> None:
        with self.guard:
            self._asked.pop(id_, None)
        self._put.discard(id_)

    def _call(self, tell: Callable[..., object], *arguments: object) -> None:
        with suppress(trio.RunFinishedError):
            self._loop.run_sync_soon(tell, *arguments)

    def _fail(self, exc: Exception) -> None:
        """Tell all who wait that the server cannot be used; answers are sent when it can be."""
        error = exc
        if isinstance(exc, psycopg.Error):
            error = explanation(exc, "ask the leader through", self.address)
        for question in self._questions():
            if question.request.id in self._put:
                self._finish(question, Unanswered(_unknown(question, str(error))))
            else:
                self._finish(question, Unanswered(f"{error}; nothing was done"))


def _what_is_known(question: _Question, found: Withdrawn) -> Unanswered:
    if found.was_taken is None:
        return Unanswered(_unknown(question, "the server has lost the request"))
    if found.was_taken:
        return Unanswered(_unknown(question, "it has taken the request"))
    return Unanswered(
        f"{question.leader}, which leads this workflow, has not taken the request in time; nothing"
        " was done"
    )


def _unknown(question: _Question, why: str) -> str:
    leader = f"{question.leader}, which leads this workflow," if question.leader else "the leader"
    if question.request.method != "POST":
        return f"{leader} has not answered: {why}; ask again"
    return (
        f"{leader} has not answered: {why}; whether the command was carried out is not known: look"
        " at the state, and give it again if it was not"
    )
