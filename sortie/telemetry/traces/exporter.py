"""Sends spans to a collector by OTLP over HTTP, from the thread of the SDK's batch processor.

OpenTelemetry's own exporter is not used: it reads proxies, certificates and ``.netrc`` in ways of
its own, and logs what a collector answers. This one uses the library of trackers and forges.

Rule 1: a batch is sent within PATIENCE seconds, or counted as failed; at the end it is sent once.
Rule 2: no redirect is followed: the headers are for the collector.
Rule 3: nothing is raised, and nothing is logged: counts and the last error are there to be told.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from sortie import __version__
from sortie.config.traces import TraceTarget
from sortie.model.secrets import redactor
from sortie.model.texts import cut

PATIENCE = 30.0
"""Seconds from the first try to send a batch to the beginning of the last."""

TIMEOUT = 10.0
"""Seconds that a connection, or a part of an answer, may take."""

_AGAIN = frozenset({429, 502, 503, 504})  # https://opentelemetry.io/docs/specs/otlp/#failures-1
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 8.0
_ANSWER_LIMIT = 64 << 10
_SHOWN = 300


class ExportRefused(Exception):
    """The collector did not take a batch; ``pause`` is for how many seconds it wants to be left
    alone, None where another try is pointless."""

    def __init__(self, message: str, pause: float | None) -> None:
        super().__init__(message)
        self.pause = pause


class OtlpExporter(SpanExporter):
    """Sends batches. The numbers are of spans: ``taken`` of the queue, ``exported`` and
    ``failed``; they only grow, and ``error`` is why the last ones failed."""

    def __init__(self, target: TraceTarget) -> None:
        for name in ("httpx2", "httpcore2"):  # they log headers
            logging.getLogger(name).setLevel(logging.WARNING)
        self.taken = self.exported = self.failed = 0
        self.error: str | None = None
        self._target = target
        self._redact = redactor(target.secrets)
        self._client: httpx2.Client | None = None
        self._closing = threading.Event()
        self._given_up = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, and count what became of them."""
        count = len(spans)
        self.taken += count
        if self._given_up:
            self.failed += count
            return SpanExportResult.FAILURE
        try:
            lost = self._send(encode_spans(spans).SerializeToString())
        except Exception as exc:  # the edge: this thread ends with the first that is raised
            told = " ".join(str(exc).split()) or type(exc).__name__
            self.error = cut(self._redact(told), _SHOWN)
            self.failed += count
            return SpanExportResult.FAILURE
        self.failed += min(lost, count)
        self.exported += count - min(lost, count)
        return SpanExportResult.SUCCESS

    def _send(self, body: bytes) -> int:
        """Send a batch, again where it may help; return how many spans were not taken.

        Raises ExportRefused and httpx2.HTTPError.
        """
        until, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
        while True:
            try:
                return self._post(body)
            except (ExportRefused, httpx2.TransportError) as exc:
                wait = exc.pause if isinstance(exc, ExportRefused) else 0.0
                if wait is None:
                    raise
                wait, pause = max(wait, pause), min(2 * pause, _LONGEST_PAUSE)
                if time.monotonic() + wait > until or self._closing.wait(wait):
                    raise

    def _post(self, body: bytes) -> int:
        if self._client is None:
            self._client = httpx2.Client(
                headers={**self._target.headers, "User-Agent": f"sortie/{__version__}"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=TIMEOUT,
                follow_redirects=False,
            )
        headers = {"Content-Type": "application/x-protobuf"}
        with self._client.stream(
            "POST", self._target.url, content=body, headers=headers
        ) as response:
            answer = b""
            for chunk in response.iter_raw():
                answer += chunk
                if len(answer) > _ANSWER_LIMIT:
                    break
        if response.is_success:
            return self._rejected(answer)
        pause = _seconds(response.headers.get("retry-after")) or 0.0
        again = response.status_code in _AGAIN
        message = f"the collector answers {response.status_code} {response.reason_phrase}"
        raise ExportRefused(message, pause if again else None)

    def _rejected(self, answer: bytes) -> int:
        try:
            partial = ExportTraceServiceResponse.FromString(answer).partial_success
        except Exception:  # no answer of OTLP, but it was taken: of protobuf's own kind of error
            return 0
        if partial.rejected_spans:
            self.error = cut(
                self._redact(f"the collector refuses some: {partial.error_message}"), _SHOWN
            )
        return int(partial.rejected_spans)

    def hurry(self) -> None:
        """Try nothing again from now on."""
        self._closing.set()

    def give_up(self) -> None:
        """Send nothing more."""
        self._given_up = True

    def shutdown(self) -> None:
        """Close the connection."""
        self._closing.set()
        if self._client is not None:
            self._client.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Return True: nothing waits here."""
        return True


def _seconds(text: str | None) -> float | None:
    """Read a Retry-After in seconds; as a date it is not heeded."""
    return float(text) if text is not None and text.isdecimal() and len(text) < 9 else None
