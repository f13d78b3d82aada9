"""``sortie open``: have a browser signed in."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.output import Format, emit_json, emit_line, note
from sortie.cli.parameters import option
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.cli.discovery import DaemonPlace
    from sortie.daemon.endpoint_file import DaemonEndpoint


def open(  # noqa: A001
    source: Source,
    only_print: Annotated[
        bool,
        option("--print", help="Print the link and open no browser."),
    ] = False,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Print a link that signs a browser in, and open it on a desktop.

    The link works once and for two minutes. The browser stays signed in for twelve hours, or until
    the daemon is restarted, and can give commands.
    """
    from sortie.cli.client import accepted, ask
    from sortie.cli.discovery import locate

    every = source.each()
    place, endpoint = _first_daemon(list(map(locate, every.values())))
    answer = accepted(
        ask(place, endpoint, "POST", "/api/v1/sign-in"), place, "have a browser signed in"
    )
    path, seconds = answer.document.get("path"), answer.document.get("expires_in")
    if not isinstance(path, str) or not path.startswith("/sign-in?"):
        raise SortieError("the daemon gave no link; restart it, which brings it up to date")
    home = (endpoint.url or "").rstrip("/")
    if "" not in every:
        home = home.partition("/workflows/")[0]  # the page of all
    url = f"{home}{path}"
    if output is Format.JSON:
        emit_json({"url": url, "expires_in": seconds})
        return
    emit_line(url)
    if not only_print and _is_on_a_desktop() and not _open(url, f"{place.db_path}.sign-in.html"):
        note("sortie: no browser could be opened; open the link by hand")


def _first_daemon(places: Sequence[DaemonPlace]) -> tuple[DaemonPlace, DaemonEndpoint]:
    """Return the first daemon that runs, with its place. Raises NoDaemon where none does."""
    from sortie.cli.discovery import NoDaemon

    for place in places[:-1]:
        with suppress(NoDaemon):
            return place, place.daemon()
    return places[-1], places[-1].daemon()


def _is_on_a_desktop() -> bool:
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open(url: str, path: str) -> bool:
    """Open a link by way of a file that this user alone can read.

    The arguments of the browser's program can be read by everybody on the machine, and whoever is
    first with the link is signed in.
    """
    try:
        _write_private(path, f'<meta http-equiv="refresh" content="0; url={escape(url)}">\n')
    except OSError:
        return False
    return webbrowser.open(Path(path).absolute().as_uri())


def _write_private(path: str, text: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
