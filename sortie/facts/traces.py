"""Facts about the export of spans."""

from __future__ import annotations

from collections.abc import Iterable

from sortie.facts.fact import Fact, LogLine, RecurringFailures, fact, line


@fact("traces.exported", "debug")
class SpansExported(Fact, frozen=True, kw_only=True):
    """Since the last of these facts so many spans were taken by the collector.

    ``dropped`` found no room while others waited, and ``failed`` were not taken, for ``error``.
    """

    exported: int
    dropped: int = 0
    failed: int = 0
    error: str | None = None

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        if self.dropped or self.failed:
            lost = line("warning", "traces.lost", **self.shown())
            # One cause, though its words may name other ports and times.
            return [failures.count("traces", lost, None)]
        again = failures.end("traces", line("info", "traces.exported_again"))
        return [line(self.level, self.event, **self.shown()), *again]
