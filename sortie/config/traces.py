"""The settings of ``traces``: where the spans of runs are sent, which of them, and with what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import unquote

from msgspec import Struct
from pydantic import AfterValidator, PlainSerializer, SecretStr
from pydantic_core import PydanticCustomError

from sortie.config.block import Block
from sortie.config.endpoints import address_findings
from sortie.config.references import Lookup
from sortie.config.report import Finding
from sortie.config.values import CheckWithSchema, Frozen, Line, needs
from sortie.documents import Path
from sortie.model.hiding import repr_without

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
SERVICE_VARIABLE = "OTEL_SERVICE_NAME"
RESOURCE_VARIABLE = "OTEL_RESOURCE_ATTRIBUTES"

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TEXT = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_OURS = {"content-type", "content-length", "host", "transfer-encoding", "user-agent"}
_SCHEMES = ("bearer ", "basic ")
_SECRET_PART = 8  # a shorter one is a word as often as not, which stands in other texts too


def _share() -> CheckWithSchema:
    """Accept numbers from 0 to 1."""

    def check(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= 1:
            raise needs("a number from 0 to 1")
        return float(value)

    return CheckWithSchema(check, shape={"type": "number", "minimum": 0, "maximum": 1})


def _headers(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise needs(f"names of headers, which {name!r} is not")
        if name.lower() in _OURS:
            raise needs(f"other headers than {name}, which Sortie sets itself")
        if not _TEXT.fullmatch(value.get_secret_value()):
            raise needs(f"a text of printable ASCII on one line for {name}")
    return Frozen(headers)


Headers = Annotated[
    Mapping[str, SecretStr],
    AfterValidator(_headers),
    PlainSerializer(dict, return_type=dict[str, SecretStr]),
]
"""Headers of a request by name; it cannot be changed, and shows no value."""


class TracesSettings(Block):
    """Where spans go by OTLP over HTTP, and which; ``sample`` is the share of runs that are traced.

    ``content``: what the agent is told and answers, and what its tools are given and say, is in
    spans too. Without ``endpoint`` or ``headers`` the variables of OpenTelemetry say them.
    """

    endpoint: Annotated[Line | None, Lookup.WHOLE] = None
    headers: Annotated[Headers, Lookup.NEEDED] = Frozen()
    sample: Annotated[float, _share()] = 1.0
    content: bool = False


class TraceTarget(Struct, frozen=True, kw_only=True):
    """Where spans are sent to and as whose; ``url`` is the whole address."""

    url: str
    headers: Mapping[str, str]
    service: str
    resource: Mapping[str, str]

    __repr__ = repr_without("headers")

    @property
    def secrets(self) -> frozenset[str]:
        """What no text may hold: the headers, and what in them follows the name of a scheme."""
        values = [value.strip() for value in self.headers.values()]
        parts = [
            value[len(scheme) :].strip()
            for value in values
            for scheme in _SCHEMES
            if value.lower().startswith(scheme)
        ]
        return frozenset(text for text in (*values, *parts) if len(text) >= _SECRET_PART)


def trace_target(traces: TracesSettings, lookup: Callable[[str], str | None]) -> TraceTarget:
    """Return where spans are sent; ``lookup`` gives variables of the environment."""
    endpoint = traces.endpoint or lookup(ENDPOINT_VARIABLE) or DEFAULT_ENDPOINT
    headers = {name: value.get_secret_value() for name, value in traces.headers.items()}
    resource = _pairs(lookup(RESOURCE_VARIABLE))
    return TraceTarget(
        url=f"{endpoint.strip().rstrip('/')}/v1/traces",
        headers=headers or _pairs(lookup(HEADERS_VARIABLE)),
        service=(lookup(SERVICE_VARIABLE) or "").strip() or resource.get("service.name", "sortie"),
        resource=resource,
    )


def _pairs(text: str | None) -> dict[str, str]:
    """Read ``name=value,name=value``, in which values are percent-encoded, as W3C Baggage is."""
    pairs = [item.partition("=") for item in (text or "").split(",")]
    return {
        unquote(name.strip()): unquote(value.strip()) for name, equals, value in pairs if equals
    }


def traces_findings(
    traces: TracesSettings | None, lookup: Callable[[str], str]
) -> Iterator[Finding]:
    """Yield what is wrong with the address, be it of the file or of a variable, and with headers
    of a variable."""
    if traces is None:
        return
    path: Path = ("traces", "endpoint") if traces.endpoint else ("traces",)
    address = traces.endpoint or lookup(ENDPOINT_VARIABLE).strip()
    if address:
        where = "" if traces.endpoint else f"${ENDPOINT_VARIABLE} "
        for finding in address_findings(path, address, DEFAULT_ENDPOINT, "traces.headers"):
            if finding.severity == "error" or traces.headers or lookup(HEADERS_VARIABLE):
                yield Finding(
                    path=path, message=f"{where}{finding.message}", severity=finding.severity
                )
    if not traces.headers and lookup(HEADERS_VARIABLE):
        try:
            given = _pairs(lookup(HEADERS_VARIABLE))
            _headers({name: SecretStr(value) for name, value in given.items()})
        except PydanticCustomError as exc:
            yield Finding(path=("traces",), message=f"${HEADERS_VARIABLE} {exc.message()}")
