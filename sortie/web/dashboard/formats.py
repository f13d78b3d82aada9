"""How values look on a page: times, spans, amounts, addresses."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from markupsafe import Markup

from sortie.model.numbers import span

SHORT_TEXT = 200
"""Characters of a message in a table."""

_BAR_WIDTH = 60


def age(at: datetime, now: float) -> str:
    """Write how long ago something was, at ``now`` in Unix seconds."""
    return span(now - at.timestamp())


def countdown(at: datetime, now: float) -> str:
    """Write how long it is until something, or that it is due."""
    left = at.timestamp() - now
    return f"in {span(left)}" if left > 0 else "due"


def iso(at: datetime | float) -> str:
    """Write a time for machines, in UTC to the second; a browser goes on counting from it."""
    return _moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at: datetime | float) -> str:
    """Write the time of day, in UTC and said so."""
    return _moment(at).strftime("%H:%M:%SZ")


def words(name: str) -> str:
    """Write a name of the code for people."""
    return name.replace("_", " ")


def short(text: str) -> str:
    """Cut a message for a table."""
    return text if len(text) <= SHORT_TEXT else f"{text[: SHORT_TEXT - 1]}…"


def request_name(url: str) -> str:
    """Return a pull request's address as people call it, such as ``hello-world#7``."""
    parts = urlsplit(url).path.strip("/").split("/")
    number = parts[-1]
    places = [part for part in parts[:-1] if part not in ("-", "pull", "pulls", "merge_requests")]
    return f"{places[-1]}#{number}" if places and number.isdigit() else url


def web_url(url: str | None) -> str | None:
    """Return an address that may become a link: of the web, whole, and without a user in it."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and not parts.username
    except ValueError:
        return None
    return url if is_web and url.isprintable() and not url[:1].isspace() else None


def issue_path(name: str) -> str:
    """Return the path of an issue's page."""
    return f"/issues/{quoted(name)}"


def quoted(text: str) -> str:
    """Write any text as one segment of a path."""
    return quote(text, safe="", errors="backslashreplace")


def bar(value: float, most: float) -> Markup:
    """Draw how full something is."""
    share = max(0.0, min(1.0, value / most)) if most else 0.0
    kind = "full" if share >= 1 else "part"
    return Markup(
        f'<svg class="bar {kind}" viewBox="0 0 {_BAR_WIDTH} 4" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect class="track" width="{_BAR_WIDTH}" height="4"/>'
        f'<rect class="fill" width="{share * _BAR_WIDTH:.1f}" height="4"/></svg>'
    )


def _moment(at: datetime | float) -> datetime:
    return at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
