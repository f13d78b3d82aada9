"""Which secrets a daemon hides in its texts, while settings and tokens change."""

from __future__ import annotations

import io
import json

from sortie.daemon.known_secrets import MINTED_KEPT, KnownSecrets
from sortie.daemon.secrets_in_settings import known_secrets, secrets_of
from sortie.telemetry.log import configure, hide
from sortie.telemetry.log.structlog_alone import structlog
from tests.config.sample import GOOD, around, settings_of


def test_each_change_is_told() -> None:
    """What was known stays: a run may have been given it."""
    told: list[frozenset[str]] = []
    secrets = KnownSecrets({"first"})

    secrets.tell(told.append)
    secrets.name({"second"})
    secrets.mint("minted")
    secrets.mint("minted")
    secrets.mint("second")

    first, second = frozenset({"first"}), frozenset({"first", "second"})
    assert told == [first, second, second | {"minted"}]
    assert secrets.values == told[-1]


def test_tokens_that_have_ended_are_forgotten() -> None:
    """A daemon mints them for as long as it lives."""
    secrets = KnownSecrets({"named"})

    for number in range(1000):
        secrets.mint(f"minted {number}")

    kept = {f"minted {number}" for number in range(1000 - MINTED_KEPT, 1000)}
    assert secrets.values == kept | {"named"}


def test_the_log_hides_what_it_is_told_of_later() -> None:
    """It was configured before there was a token."""
    stream = io.StringIO()
    configure("info", "json", stream, secrets={"named"})
    secrets = KnownSecrets({"named"})
    secrets.tell(hide)

    secrets.mint("ghs-minted")
    structlog.get_logger().info("hook.completed", output="named and ghs-minted")

    assert json.loads(stream.getvalue())["output"] == "*** and ***"


def test_headers_of_traces_are_secrets_of_the_daemon() -> None:
    """A variable with them is kept from agents where they are Sortie's; the log hides them."""
    variable = "OTEL_EXPORTER_OTLP_HEADERS"
    environ = {variable: "authorization=Bearer%20from-the-variable"}
    none = settings_of(GOOD)
    some = settings_of(GOOD + "traces: {}\n", around(environ))
    own = settings_of(GOOD + "traces: {headers: {authorization: from-the-file}}\n")

    assert variable not in secrets_of(none).names | secrets_of(own).names
    assert variable in secrets_of(some).names
    assert "from-the-file" in secrets_of(own).values
    assert "from-the-variable" in known_secrets(some, environ)
    assert "from-the-variable" not in known_secrets(own, environ) | known_secrets(none, environ)
