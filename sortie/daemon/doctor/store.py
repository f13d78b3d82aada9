"""The checks of the PostgreSQL server that has the rows: version, rights, clock, leases."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sortie.config.settings import Settings
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.model.numbers import counted
from sortie.resources import run_in_thread
from sortie.store.opening import postgres_module

if TYPE_CHECKING:
    from sortie.store.postgres_about import AboutServer

SLOW, CROOKED = 0.02, 2.0
"""Seconds of an answer, and of a difference between two clocks, above which a check warns."""


def store_checks(settings: Settings) -> Sequence[Check]:
    """Return the checks of the server that the settings name."""

    async def server() -> CheckResult:
        return await run_in_thread(server_result, settings)

    async def rights() -> CheckResult:
        return await run_in_thread(rights_result, settings)

    async def clock() -> CheckResult:
        return await run_in_thread(clock_result, settings)

    async def leases() -> CheckResult:
        return await run_in_thread(leases_result, settings)

    remedy = "mend what it says; see docs/postgresql.md"
    return (
        Check(name="server", ask=server, remedy=remedy),
        Check(name="rights", ask=rights, needs=("server",), remedy=remedy),
        Check(name="clock", ask=clock, needs=("server",), remedy=remedy),
        Check(name="leases", ask=leases, needs=("server",), remedy=remedy),
    )


def server_result(settings: Settings) -> CheckResult:
    """Tell which server it is, how soon it answers, and whether what it has written stays."""
    about = _about(settings)
    said = (
        f"{about.name}: PostgreSQL {about.version}, answers in {about.latency * 1000:.1f} ms, "
        f"{'encrypted' if about.is_encrypted else 'not encrypted'}"
    )
    if about.is_standby:
        return failed(f"{said}, and is a standby, which cannot be written", "name the primary")
    unsafe = [name for name in ("fsync", "full_page_writes") if about.settings[name] == "off"]
    if unsafe:
        return warned(
            f"{said}; {' and '.join(unsafe)} is off, so that a crash of its machine may damage it",
            "set it to on in postgresql.conf",
        )
    if about.latency > SLOW:
        return warned(
            f"{said}; each step of a run waits for several answers", "use a server that is nearer"
        )
    return passed(said)


def rights_result(settings: Settings) -> CheckResult:
    """Tell whether the daemon may use its schema, or make it."""
    about, schema = _about(settings), settings.store.schema_name
    if about.has_schema and not about.may_use:
        return failed(
            f"the user {about.login} may not use the schema {schema}",
            f"name its owner in store.url, or: ALTER SCHEMA ... OWNER TO {about.login}",
        )
    if about.has_schema:
        return passed(f"the user {about.login} may use the schema {schema}")
    if about.may_create:
        return passed(f"the user {about.login} may make the schema {schema}, as the start will")
    return failed(
        f"there is no schema {schema}, and the user {about.login} may not make one",
        f"CREATE SCHEMA ... AUTHORIZATION {about.login}",
    )


def clock_result(settings: Settings) -> CheckResult:
    """Tell how far the clocks of the server and of this machine are apart."""
    about = _about(settings)
    if abs(about.clock_ahead) > CROOKED:
        way = "ahead of" if about.clock_ahead > 0 else "behind"
        return warned(
            f"the server's clock is {abs(about.clock_ahead):.1f} s {way} this machine's",
            "have both keep the time by NTP",
        )
    return passed(f"the server's clock differs by {abs(about.clock_ahead):.1f} s")


def leases_result(settings: Settings) -> CheckResult:
    """Tell whether the daemon can lead the workflow, and which one leads it now."""
    address = postgres_module().address_of(settings.store)
    from sortie.store.postgres_about_leases import about_leases

    begun = time.monotonic()
    found = about_leases(address)
    took = time.monotonic() - begun
    schema, login = found.schema, found.login
    if found.has_schema and not found.may_use:
        return failed(
            f"the user {login} may not use the schema {schema}, which daemons share",
            f"ALTER SCHEMA ... OWNER TO {login}, with its tables and its sequence",
        )
    if not found.has_schema and not found.may_create:
        return failed(
            f"there is no schema {schema}, which daemons share, and the user {login} may not make"
            " one",
            f"CREATE SCHEMA ... AUTHORIZATION {login}",
        )
    if found.fleet is None:
        return passed(f"the user {login} may make the schema {schema}, as the start will")
    standing, alive = found.standing, [one for one in found.fleet.daemons if one.is_alive]
    leader = None if standing is None or standing.left <= 0 else standing.name
    said = (
        f"{leader or 'no daemon'} leads the workflow, {counted(len(alive), 'daemon')} of the"
        f" database {'lives' if len(alive) == 1 else 'live'}"
    )
    if took > settings.store.lease / 30:
        return warned(
            f"{said}; the server took {took:.1f} s for some questions, and a lease has to be"
            f" renewed every {settings.store.lease / 3:.0f} s",
            "use a server that is nearer, or raise store.lease_ms",
        )
    return passed(said)


def _about(settings: Settings) -> AboutServer:
    address = postgres_module().address_of(settings.store)
    from sortie.store.postgres_about import about_server

    return about_server(address, time.time)
