"""Small charts as SVG, drawn here, whose shapes say as much as their colours.

Every bar has its numbers as a title, and the caption tells the sums: the picture need not be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from markupsafe import Markup
from msgspec import Struct

from sortie.model.numbers import counted, credits_text, dollars_text, number_text, tokens_text, took
from sortie.web.dashboard.activity import Bucket

WIDTH, HEIGHT = 288, 56
_BAR_GAP = 1.5
_CAPTION_HEIGHT = 11


class Bar(Struct, frozen=True):
    """What began at ``at`` (Unix seconds): parts up from the axis, parts down, and words."""

    at: int
    up: tuple[tuple[str, float], ...]
    down: tuple[tuple[str, float], ...]
    words: str


class Chart(Struct, frozen=True):
    """Bars from left to right; ``caption`` has the sums in words, ``label`` the highest."""

    title: str
    caption: str
    bars: tuple[Bar, ...]
    label: str


def charts(buckets: Sequence[Bucket]) -> tuple[Chart, ...]:
    """Make the charts of the last hours: and of what is used where agents report it."""
    return (_ended(buckets), _turns(buckets), *_used(buckets))


def _ended(buckets: Sequence[Bucket]) -> Chart:
    good, bad, stopped = (
        sum(getattr(b, name) for b in buckets) for name in ("succeeded", "failed", "stopped")
    )
    caption = f"▲ {good:,} succeeded · ▼ {bad:,} failed"
    if stopped:
        caption += f" · ▪ {stopped:,} stopped"
    bars = tuple(
        Bar(
            at=b.begins_at,
            up=(("good", b.succeeded), ("other", b.stopped)),
            down=(("bad", b.failed),),
            words=f"{b.succeeded} succeeded, {b.failed} failed, {b.stopped} stopped",
        )
        for b in buckets
    )
    return Chart("Runs that ended", caption, bars, _most(bars, number_text))


def _turns(buckets: Sequence[Bucket]) -> Chart:
    turns = sum(b.turns for b in buckets)
    seconds = sum(b.turn_seconds for b in buckets)
    caption = (
        f"{took(seconds / turns)} on average, {counted(turns, 'turn')}"
        if turns
        else "no turn ended"
    )
    bars = tuple(
        Bar(
            at=b.begins_at,
            up=(("plain", b.turn_seconds / b.turns if b.turns else 0.0),),
            down=(),
            words=f"{took(b.turn_seconds / b.turns)}, {counted(b.turns, 'turn')}"
            if b.turns
            else "no turn",
        )
        for b in buckets
    )
    return Chart("Duration of a turn", caption, bars, _most(bars, took))


def _used(buckets: Sequence[Bucket]) -> Iterator[Chart]:
    """Yield a chart of each thing that agents report."""
    for title, name, text in _USED_AMOUNTS:
        amounts = [getattr(b.spent, name) for b in buckets]
        known = [amount for amount in amounts if amount is not None]
        if known:
            bars = tuple(
                Bar(
                    at=b.begins_at,
                    up=(("plain", amount or 0.0),),
                    down=(),
                    words="not reported" if amount is None else text(amount),
                )
                for b, amount in zip(buckets, amounts, strict=True)
            )
            yield Chart(title, f"{text(sum(known))} in all", bars, _most(bars, text))


_USED_AMOUNTS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("Cost", "cost_usd", dollars_text),
    ("Credits", "credits", credits_text),
    ("Tokens", "tokens", tokens_text),
)


def svg(chart: Chart) -> Markup:
    """Draw a chart."""
    highest = max((sum(v for _, v in bar.up) for bar in chart.bars), default=0.0)
    lowest = max((sum(v for _, v in bar.down) for bar in chart.bars), default=0.0)
    scale = (HEIGHT - 2) / (highest + lowest) if highest + lowest else 0.0
    axis = 1 + highest * scale if scale else HEIGHT - 1
    step = WIDTH / max(1, len(chart.bars))
    parts = [
        f'<line class="axis" x1="0" x2="{WIDTH}" y1="{axis:.1f}" y2="{axis:.1f}"/>',
    ]
    for place, bar in enumerate(chart.bars):
        shapes = _shapes(bar, place * step, (axis, step - _BAR_GAP, scale))
        begins = datetime.fromtimestamp(bar.at, UTC).strftime("%H:%M")
        parts.append(f"<g><title>{begins}Z: {bar.words}</title>{shapes}</g>" if shapes else "")
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT + _CAPTION_HEIGHT}" role="img" '
        f'aria-label="{chart.title}: {chart.caption}">{"".join(parts)}'
        f'<text x="0" y="{HEIGHT + 9}">12 h ago</text>'
        f'<text x="{WIDTH / 2}" y="{HEIGHT + 9}" class="mid">{chart.label}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 9}" class="end">now</text></svg>'
    )


def _shapes(bar: Bar, x: float, frame: tuple[float, float, float]) -> str:
    axis, width, scale = frame
    shapes, above, below = [], axis, axis
    for kind, value in bar.up:
        if height := _height(value, scale):
            above -= height
            shapes.append(_rect(kind, x, above, (width, height)))
    for kind, value in bar.down:
        if height := _height(value, scale):
            shapes.append(_rect(kind, x, below, (width, height)))
            below += height
    return "".join(shapes)


def _height(value: float, scale: float) -> float:
    return max(1.0, value * scale) if value > 0 else 0.0


def _rect(kind: str, x: float, y: float, size: tuple[float, float]) -> str:
    width, height = size
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def _most(bars: Sequence[Bar], words: Callable[[float], str]) -> str:
    highest = max((sum(v for _, v in (*b.up, *b.down)) for b in bars), default=0)
    return f"highest {words(highest)}" if highest else ""
