"""The settings of ``traces``: off by default, headers that nobody sees, and variables."""

from __future__ import annotations

import pytest

from sortie.config.reload import needs_restart
from sortie.config.settings import Settings
from sortie.config.traces import TracesSettings, TraceTarget, trace_target
from tests.config.sample import GOOD, around, findings, settings_of


def traces_of(settings: Settings) -> TracesSettings:
    assert settings.traces is not None
    return settings.traces


def target(lines: str, **environ: str) -> TraceTarget:
    settings = settings_of(GOOD + f"traces:\n{lines}\n", around(environ))
    return trace_target(traces_of(settings), environ.get)


def test_there_are_none_by_default() -> None:
    """A block without anything has its defaults."""
    assert settings_of(GOOD).traces is None
    assert target("  {}") == TraceTarget(
        url="http://127.0.0.1:4318/v1/traces", headers={}, service="sortie", resource={}
    )


def test_headers_are_secrets() -> None:
    """Each may be put together from a variable, which no agent inherits; none is shown."""
    environ = {"TOKEN": "t0ken-t0ken"}
    block = "traces:\n  headers: {Authorization: Bearer $TOKEN, X-Scope-OrgID: t1}\n"
    settings = settings_of(GOOD + block, around(environ))
    made = trace_target(traces_of(settings), environ.get)

    assert made.headers == {"Authorization": "Bearer t0ken-t0ken", "X-Scope-OrgID": "t1"}
    assert made.secrets == {"Bearer t0ken-t0ken", "t0ken-t0ken"}
    assert "TOKEN" in settings.secret_variables
    assert "t0ken" not in repr(settings) + repr(made) + settings.model_dump_json()


def test_variables_of_opentelemetry_stand_in() -> None:
    """For what the block does not say; what it says comes first."""
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example/base/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20secret%2C%20long, x-team = blue",
        "OTEL_SERVICE_NAME": "builds",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=prod,service.name=other",
    }
    made = target("  {}", **environ)
    own = target("  endpoint: http://127.0.0.1:9\n  headers: {x-key: mine-mine}", **environ)

    assert made == TraceTarget(
        url="https://collector.example/base/v1/traces",
        headers={"x-key": "a secret, long", "x-team": "blue"},
        service="builds",
        resource={"deployment.environment.name": "prod", "service.name": "other"},
    )
    assert made.secrets == {"a secret, long"}
    assert (own.url, own.headers) == ("http://127.0.0.1:9/v1/traces", {"x-key": "mine-mine"})


@pytest.mark.parametrize(
    ("lines", "environ", "found"),
    [
        ("  endpoint: collector:4318", {}, "traces.endpoint: needs an address such as http:"),
        ("  endpoint: http://me:pw@h:1", {}, "traces.endpoint: must not hold a name, a password"),
        (
            "  {}",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "h"},
            "traces: $OTEL_EXPORTER_OTLP_ENDPOINT",
        ),
        ("  {}", {"OTEL_EXPORTER_OTLP_HEADERS": "a b=c"}, "traces: $OTEL_EXPORTER_OTLP_HEADERS"),
        ("  headers: {a b: c}", {}, "traces.headers: needs names of headers, which 'a b' is not"),
        ("  headers: {Host: c}", {}, "traces.headers: needs other headers than Host,"),
        ('  headers: {a: "b\\nc"}', {}, "traces.headers: needs a text of printable ASCII"),
        ("  headers: {a: $NO}", {}, "traces.headers.a: $NO is not set or empty, and nothing else"),
        ("  headers: [a]", {}, "traces.headers: needs a mapping"),
        ("  sample: 1.5", {}, "traces.sample: needs a number from 0 to 1, not 1.5"),
        ("  sample: true", {}, "traces.sample: needs a number from 0 to 1"),
        ("  content: yes", {}, "traces.content: needs true or false"),
        ("  endpont: x", {}, "traces.endpont: unknown key"),
        (
            "  endpoint: http://h:4318\n  headers: {a: secretsecret}",
            {},
            "warning: traces.endpoint: has no https, so that anybody on the way can read the key",
        ),
    ],
)
def test_what_is_wrong_is_said(lines: str, environ: dict[str, str], found: str) -> None:
    """With its place, and without what a header holds."""
    (told,) = findings(GOOD + f"traces:\n{lines}\n", around(environ))

    assert found in told
    assert "pw@" not in told


def test_a_plain_address_without_headers_is_right() -> None:
    """Nobody on the way can read a key that there is not."""
    assert findings(GOOD + "traces:\n  endpoint: http://collector:4318\n") == []


def test_changes_need_a_restart() -> None:
    """Of a key, or of the block."""
    none = settings_of(GOOD)
    some = settings_of(GOOD + "traces: {}\n")
    half = settings_of(GOOD + "traces: {sample: 0.5}\n")

    assert needs_restart(none, some) == needs_restart(some, none) == ("traces",)
    assert needs_restart(some, half) == ("traces.sample",)
    assert needs_restart(half, half) == ()
