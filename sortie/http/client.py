"""The HTTP client of a tracker or forge, for its whole life: bounded, signed, without redirects.

Rule 1: a request ends within LONGEST_REQUEST seconds, and its body within LARGEST_BODY bytes.
Rule 2: a secret is sent to the endpoint's scheme, host and port only, and stands in no error.
Rule 3: a change is sent once: no redirect is followed, and a lost answer is a LostAnswer.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import quote

import httpx2
import trio
from msgspec.structs import replace

from sortie import __version__
from sortie.http.answers import HttpAnswer, NoJson, has_list_at
from sortie.http.bodies import LargeBody, end_of_body, whole_body
from sortie.http.budget import Budgets, Use, retry_after, server_time
from sortie.http.credentials import Credential
from sortie.http.endpoint import REDIRECTS, ServerEndpoint
from sortie.http.errors import MAYBE_DONE, chain_of, failure
from sortie.http.etags import ETagMemory
from sortie.http.requests import HttpRequest, Provider
from sortie.http.slots import RequestSlots
from sortie.http.under_lease import extensions, sending
from sortie.model import LostAnswer, RateBudget, TrackerError, TrackerErrorKind
from sortie.model.secrets import redactor
from sortie.model.texts import start_of

LONGEST_REQUEST = 50.0
"""Seconds from the sending of a request to the last byte of its answer."""

HTTP_TIMEOUT = httpx2.Timeout(connect=10.0, read=30.0, write=30.0, pool=None)

_SHOWN, _SHOWN_BODY = 500, 80  # characters of an error, and of a body that is not as it should be


def segment(text: str | int) -> str:
    """Return a text as one part of a path: with slashes and question marks encoded."""
    quoted = quote(str(text), safe="")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


@asynccontextmanager
async def open_client(
    provider: Provider,
    endpoint: str,
    credential: Credential,
    progress: Callable[[], object] = lambda: None,
) -> AsyncIterator[HttpClient]:
    """Hold a client open; ``endpoint`` is what all paths are added to.

    Opened again meanwhile with the same credential of the same provider, it gives the same
    client, so that a limit of the account is counted once. ``progress`` is called with each
    answer. Raises TrackerError (INVALID) where the endpoint is no address.
    """
    client = HttpClient(provider, ServerEndpoint.of(endpoint), credential)
    client = next((other for other in _open if other.account == client.account), client)
    if not client.users:
        _open.append(client)
    client.users.append(progress)
    try:
        yield client
    finally:
        client.users.remove(progress)
        if not client.users:
            _open.remove(client)
            with trio.CancelScope(shield=True):
                await client.aclose()


class HttpClient:
    """Asks one provider with one credential."""

    def __init__(
        self, provider: Provider, endpoint: ServerEndpoint, credential: Credential
    ) -> None:
        for name in ("httpx2", "httpcore2"):  # they log addresses and headers of answers
            logging.getLogger(name).setLevel(logging.WARNING)
        self._client = httpx2.AsyncClient(
            headers={
                "Accept": "application/json",
                "User-Agent": f"sortie/{__version__}",
                **provider.headers,
            },
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=HTTP_TIMEOUT,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=provider.at_once, keepalive_expiry=60.0),
        )
        self._provider = provider
        self.endpoint = endpoint
        self.credential = credential
        self.users: list[Callable[[], object]] = []
        self._etags = ETagMemory()
        self._budgets = Budgets(provider.budgets)
        self._slots = RequestSlots(provider.at_once, provider.change_gap)
        self.server_time: tuple[datetime, float] | None = None

    @property
    def account(self) -> tuple[object, ...]:
        """The service and the account, by which a client is shared."""
        provider = replace(self._provider, change_gap=0.0)
        return provider, str(self.endpoint), self.credential.identity

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def __repr__(self) -> str:
        return f"HttpClient({self._provider.name}, {self.endpoint})"

    @property
    def provider(self) -> str:
        """The name of the provider."""
        return self._provider.name

    def budgets(self) -> tuple[RateBudget, ...]:
        """Return what is known of the budgets of the credential."""
        return self._budgets.shown(trio.current_time())

    def list_pause(self) -> float:
        """Return for how many seconds no list should be asked for, so that requests last."""
        return self._budgets.list_pause(trio.current_time())

    def budget_wait(self, use: Use, name: str) -> float:
        """Return for how many seconds a budget is used up for requests of this use, else 0."""
        return self._budgets.wait_before(use, name, trio.current_time())

    def list_ended(self) -> None:
        """Note that a list is whole, by which the cost of the next one is known."""
        self._budgets.list_ended()

    def server_now(self) -> datetime:
        """Return the time by the clock of the last answer, by ours before the first."""
        if self.server_time is None:
            return datetime.now(UTC)
        then, at = self.server_time
        return then + timedelta(seconds=trio.current_time() - at)

    async def ask(self, request: HttpRequest) -> HttpAnswer:
        """Make a request and return its answer: a success, or a status that is ``wanted``.

        A success has JSON, or no body at all. Raises TrackerError for everything else that is
        expected: with ``retry_after`` where the tracker wants to be left alone, as LostAnswer where
        a change may have been made.
        """
        answer = await self._signed(request)
        if answer.status == 401 and request.signed and await self.credential.renew():
            answer = await self._signed(request)
        if request.follow and answer.status in REDIRECTS and not request.is_change:
            answer = await self._redirected(request, answer)
        for progress in self.users:
            progress()
        is_limit = self._provider.is_limit(answer)  # GraphQL tells of limits with 200, too
        if answer.ok or (answer.status in request.wanted and not is_limit):
            if not is_limit:
                self._budgets.answered()
            self._check_json(request, answer)
            return answer
        raise self._refusal(request, answer)

    async def _redirected(self, request: HttpRequest, answer: HttpAnswer) -> HttpAnswer:
        """Return the answer to which a redirect leads; what is signed stays on this server."""
        location, attempt = answer.headers.get("location", ""), self._attempt(request)
        if request.tail is None:
            path = self.endpoint.redirected(answer.url, location, attempt)
            return await self._signed(replace(request, path=path, params=(), follow=False))
        url = self.endpoint.elsewhere(answer.url, location, attempt)
        async with self._slots.held(is_change=False):
            return await self._sent(request, url, {})

    async def _signed(self, request: HttpRequest) -> HttpAnswer:
        """Make a request with the credential, for which that may have to ask first."""
        signed = await self.credential.headers() if request.signed else {}
        async with self._slots.held(is_change=request.is_change):
            return await self._answered(request, signed)

    async def _answered(self, request: HttpRequest, signed: Mapping[str, str]) -> HttpAnswer:
        """Return the whole answer, whatever it is; the remembered one where it is the same."""
        attempt = f"{request.what}: this credential of {self._provider.name}"
        self._budgets.require(request.use, request.budget, trio.current_time(), attempt)
        url = self.endpoint.url(request)
        key = (str(url), request.headers.get("Accept", ""))
        known = self._etags.get(key) if request.remember else None
        etag = None if known is None else known.headers["etag"]
        headers = {**request.headers, **signed, **({"If-None-Match": etag} if etag else {})}
        with sending(self._attempt(request), is_change=request.is_change):
            answer = await self._sent(request, url, headers)
        now = trio.current_time()
        self._budgets.heard(answer.headers, now, request.use)
        if (there := server_time(answer.headers)) is not None:
            self.server_time = there, now
        if answer.status == 304 and known is not None:
            return replace(known, remembered=True)
        if request.remember and request.method == "GET" and answer.status == 200:
            self._check_json(request, answer)  # what is broken must not be remembered
            self._etags.put(key, answer)
        return answer

    async def _sent(
        self, request: HttpRequest, url: httpx2.URL, headers: Mapping[str, str]
    ) -> HttpAnswer:
        told = extensions(self._attempt(request), is_change=request.is_change)
        try:
            with trio.fail_after(LONGEST_REQUEST):
                question = self._client.build_request(
                    request.method, url, headers=headers, extensions=told, **request.payload
                )
                reply = await self._client.send(question, stream=True, auth=None)
                try:
                    if request.tail is None:
                        content = await whole_body(reply)
                    else:
                        content = await end_of_body(reply, request.tail)
                finally:
                    with trio.move_on_after(1, shield=True):
                        await reply.aclose()
        except (httpx2.HTTPError, OSError) as exc:
            raise failure(
                exc, self._attempt(request), self._clean(chain_of(exc)), is_change=request.is_change
            ) from exc
        except trio.TooSlowError as exc:
            late = f"the answer took more than {LONGEST_REQUEST:g} s"
            raise self._unread(request, late) from exc
        except LargeBody as exc:
            raise self._unread(request, str(exc)) from exc
        return HttpAnswer(
            status=reply.status_code,
            url=str(url),
            headers={name.lower(): value for name, value in reply.headers.items()},
            content=content,
        )

    def _unread(self, request: HttpRequest, told: str) -> TrackerError:
        """Return an answer that cannot be read as an error."""
        kind = LostAnswer if request.is_change else TrackerError
        return kind(TrackerErrorKind.UNAVAILABLE, f"{self._attempt(request)}: {told}")

    def _check_json(self, request: HttpRequest, answer: HttpAnswer) -> None:
        if not answer.ok or request.tail is not None:
            return
        if not answer.has_body and request.list_at is None:
            return
        try:
            body = answer.json()
        except NoJson as exc:
            told = start_of(answer.text(), _SHOWN_BODY, self._clean)
            raise self._unread(request, f"it answered {exc}: {told!r}") from None
        if request.list_at is not None and not has_list_at(body, request.list_at):
            told = start_of(answer.text(), _SHOWN_BODY, self._clean)
            what = f"it answered something that is no list of objects: {told!r}"
            raise self.error(TrackerErrorKind.UNAVAILABLE, request, what)

    def _refusal(self, request: HttpRequest, answer: HttpAnswer) -> TrackerError:
        """Return an answer that is no success as an error."""
        provider = self._provider
        told = start_of(provider.error_text(answer), _SHOWN, self._clean)
        what = f"{self._attempt(request)}: it answered {answer.status}"
        text = f"{what}: {told}" if told else what
        if provider.is_limit(answer):
            return self._limit(answer, text)
        kind = provider.meaning_of(answer)
        if answer.status in REDIRECTS:
            location = answer.headers.get("location", "").partition("?")[0]  # a query may sign it
            place = start_of(location, _SHOWN, self._clean)
            text, kind = f"{what}, a redirect to {place}", TrackerErrorKind.CLOSED
        error = LostAnswer if request.is_change and answer.status in MAYBE_DONE else TrackerError
        wait = retry_after(answer.headers) if answer.status >= 500 else None
        return error(kind, text, retry_after=wait)

    def _limit(self, answer: HttpAnswer, text: str) -> TrackerError:
        wait = self._budgets.wait_of(answer.headers)
        return TrackerError(TrackerErrorKind.UNAVAILABLE, text, retry_after=wait)

    def limit_error(self, request: HttpRequest, answer: HttpAnswer, told: str = "") -> TrackerError:
        """Return an answer that looks like a success as a refusal for too many requests."""
        text = f"{self._attempt(request)}: it takes no more requests now"
        told = start_of(told, _SHOWN, self._clean)
        return self._limit(answer, self._clean(f"{text}: {told}" if told else text))

    def error(self, kind: TrackerErrorKind, request: HttpRequest, told: str) -> TrackerError:
        """Return what an answer that looks like a success says, as an error."""
        told = start_of(told, _SHOWN, self._clean)
        return TrackerError(kind, self._clean(f"{self._attempt(request)}: {told}"))

    def _attempt(self, request: HttpRequest) -> str:
        return f"{request.what} ({self._provider.name} at {self.endpoint.host})"

    def _clean(self, text: str) -> str:
        return redactor(self.credential.secrets)(text)


_open: list[HttpClient] = []
