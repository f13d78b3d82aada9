"""The secrets that settings name: what agents and hooks must not get, and no text may hold."""

from __future__ import annotations

from collections.abc import Mapping

from sortie.config.settings import Settings
from sortie.config.traces import HEADERS_VARIABLE, trace_target
from sortie.daemon.repositories import token_of
from sortie.model.secrets import credentials_of
from sortie.workspaces import Secrets

_OF_POSTGRES = ("PGPASSWORD", "PGPASSFILE")
"""Variables that let whoever has them into the database, where the daemon has one on a server."""


def secrets_of(settings: Settings) -> Secrets:
    """Return what agents, hooks and logs must not see."""
    known = (settings.tracker.api_key, settings.server.auth_token, *settings.secret_parts)
    values = frozenset(secret.get_secret_value() for secret in known if secret is not None)
    values |= settings.store.secrets
    values |= frozenset(settings.webhooks.secrets.values())
    values |= {secret for target in settings.notifications for secret in target.secrets}
    if settings.traces is not None:
        values |= trace_target(settings.traces, lambda _name: None).secrets
    values |= {token for one in settings.every() if (token := token_of(one))}
    names = {*settings.secret_variables, *(() if settings.store.url is None else _OF_POSTGRES)}
    if settings.traces is not None and not settings.traces.headers:  # they are those of Sortie
        names.add(HEADERS_VARIABLE)
    return Secrets(names=frozenset(names), values=values)


def known_secrets(
    settings: Settings, environ: Mapping[str, str], token: str = ""
) -> frozenset[str]:
    """Return all secrets that no text of a daemon may hold: its own, and the credentials in its
    environment, which agents inherit."""
    known = secrets_of(settings).values.union(credentials_of(environ), {token})
    if settings.traces is None:
        return known
    return known | trace_target(settings.traces, environ.get).secrets
