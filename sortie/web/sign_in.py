"""The routes by which a browser is signed in and out.

The holder of the token asks for a code; the browser that brings the code gets a session.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sortie.web.access import SIGN_IN, Caller, sessions_in
from sortie.web.base_path import base_of
from sortie.web.middleware import CALLER
from sortie.web.operations import DescribedAnswer, Operation
from sortie.web.responses import error_response, json_response, page_response
from sortie.web.sessions import CODE_SECONDS, SESSION_SECONDS, BrowserSessions

_EXPIRED = (
    f"This link has been used, or is older than {CODE_SECONDS / 60:g} minutes."
    " Ask for another one with <code>sortie open</code>."
)


_CODE = {
    "type": "object",
    "required": ["path", "expires_in"],
    "additionalProperties": False,
    "properties": {"path": {"type": "string"}, "expires_in": {"type": "integer"}},
}


def is_signed_in(request: Request) -> bool:
    """Tell whether the sender of a request may give commands."""
    return request.scope.get(CALLER) in (Caller.SESSION, Caller.TOKEN)


def _welcome(request: Request) -> Response:
    """Make the page that leads on.

    No redirect: where another page's link led here, the browser would not send the new cookie with
    what a redirect has it ask for, and does with what our own page has it ask for.
    """
    home = f"{base_of(request)}/"
    return page_response(
        200,
        f'You are signed in. <a href="{home}">Go on to Sortie.</a>',
        head=f'<meta http-equiv="refresh" content="0; url={home}">\n',
    )


def sign_in_operation(sessions: BrowserSessions | None) -> list[Operation]:
    """Return the operation that makes a code; none where there are no sessions."""
    if sessions is None:
        return []

    async def make_code(request: Request) -> Response:
        if request.scope.get(CALLER) is not Caller.TOKEN:
            return error_response(403, "only the holder of the token can sign a browser in")
        path = f"{SIGN_IN}?code={sessions.make_code()}"
        return json_response(200, {"path": path, "expires_in": int(CODE_SECONDS)})

    made = DescribedAnswer(about="the path, and the seconds for which it works", body=_CODE)
    return [
        Operation(
            method="POST",
            path="/api/v1/sign-in",
            about="Make a path that signs one browser in; needs the token itself",
            endpoint=make_code,
            answers={200: made},
        )
    ]


def sign_in_pages(sessions: BrowserSessions | None) -> list[Route]:
    """Return the routes that browsers follow; none where there are no sessions."""
    if sessions is None:
        return []

    async def sign_in(request: Request) -> Response:
        if any(map(sessions.is_open, _sessions(request))):
            return _welcome(request)
        if request.method == "HEAD":
            return page_response(403, _EXPIRED)  # a preview of the link does not use up the code
        session = sessions.open(request.query_params.get("code", ""))
        if session is None:
            return page_response(403, _EXPIRED)
        answer = _welcome(request)
        answer.set_cookie(
            sessions.cookie,
            session,
            max_age=int(SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def sign_out(request: Request) -> Response:
        for session in _sessions(request):
            sessions.close(session)
        answer = Response(status_code=303, headers={"location": f"{base_of(request)}/"})
        answer.delete_cookie(sessions.cookie, path="/", httponly=True, samesite="strict")
        return answer

    def _sessions(request: Request) -> list[str]:
        return sessions_in(request.scope["headers"], sessions.cookie)

    return [
        Route(SIGN_IN, sign_in, methods=["GET"]),
        Route("/sign-out", sign_out, methods=["POST"]),
    ]
