"""The credentials that a run uses without having them: its routes, and what leads an agent there.

The agent is told, by the variable for it, that its model's API is at the proxy, and has
placeholders in the place of keys. Git is led there by ``url.<base>.insteadOf``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sortie.model import SortieError
from sortie.model.addresses import has_more, split_endpoint
from sortie.model.allowed_hosts import canonical_host
from sortie.model.hiding import repr_without
from sortie.model.model_endpoints import ModelEndpoint
from sortie.model.secrets import SHORTEST_CREDENTIAL
from sortie.transports.walls.credential_routes import CredentialRoute
from sortie.transports.walls.placeholders import Placeholder, placeholder_for
from sortie.transports.walls.request_target import Headers, has_dots

GIT_ROUTE = "git"
_OFF = frozenset({"", "0", "false", "no", "off"})


class CredentialsError(SortieError):
    """The credentials of a run cannot be put in by the proxy."""


class RemoteCredential(Struct, frozen=True, kw_only=True):
    """A name and password for one repository over HTTP; ``url`` is its address, as git has it."""

    url: str
    username: str
    password: str

    __repr__ = repr_without("password")

    @property
    def base(self) -> str:
        """The address without what may be left out at its end."""
        return self.url.rstrip("/").removesuffix(".git")


class ProxiedCredentials(Struct, frozen=True, kw_only=True):
    """The routes of one run by their names. ``variables`` lead an agent to them: a path at the
    proxy for each; ``git`` is the repository that git is led to."""

    routes: Mapping[str, CredentialRoute] = {}
    variables: Mapping[str, str] = {}
    git: RemoteCredential | None = None

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All of them, those of longer credentials first."""
        known = {one for route in self.routes.values() for one in route.placeholders}
        return tuple(sorted(known, key=lambda one: (-len(one.secret), one.value)))

    def strange_placeholder(self, headers: Headers, route: CredentialRoute | None) -> bool:
        """Tell whether headers hold a placeholder that is not one of a route's."""
        own = () if route is None else route.placeholders
        strange = [one for one in self.placeholders if one not in own]
        return any(one.stands_in(value) for one in strange for _, value in headers)

    def agent_env(self, env: Mapping[str, str], url: str) -> dict[str, str]:
        """Return an agent's environment: ``env`` with placeholders wherever a credential stands,
        and with what leads to the proxy at ``url``."""
        hidden = {name: self._without_secrets(value) for name, value in env.items()}
        led = {name: f"{url}{path}" for name, path in self.variables.items()}
        return hidden | led | self._git_variables(env, url)

    def _without_secrets(self, text: str) -> str:
        for one in self.placeholders:
            text = text.replace(one.secret, one.value)
        return text

    def _git_variables(self, env: Mapping[str, str], url: str) -> dict[str, str]:
        if self.git is None:
            return {}
        route = self.routes[GIT_ROUTE]
        at = f"{url}/{route.name}{route.within}"
        pair = f"{self.git.username}:{route.placeholders[0].value}".encode()
        says = f"Authorization: Basic {base64.b64encode(pair).decode()}"
        settings = (
            (f"url.{at}.insteadOf", self.git.base),
            (f"http.{at}.extraHeader", says),
            (f"http.{at}.git.extraHeader", says),
        )
        return _git_settings(env, settings)


def proxied_credentials(
    endpoints: Sequence[ModelEndpoint], env: Mapping[str, str], git: RemoteCredential | None = None
) -> ProxiedCredentials:
    """Return the routes for an agent whose environment is ``env``, with new placeholders.

    Raises CredentialsError where the agent would use another credential, or none.
    """
    known: dict[str, Placeholder] = {}
    routes: dict[str, CredentialRoute] = {}
    for endpoint in endpoints:
        keys = [value for name in endpoint.keys if (value := env.get(name, "").strip())]
        if keys:
            routes[endpoint.base_url] = _model_route(endpoint, env, _placeholders(keys, known))
    if endpoints and not routes:
        names = ", ".join(name for endpoint in endpoints for name in endpoint.keys)
        raise CredentialsError(
            "sandbox.credentials is proxy, and the agent has no credential that the proxy could put"
            f" in: set one of {names} in the daemon's environment"
        )
    variables = {name: f"/{route.name}{route.within}" for name, route in routes.items()}
    by_name = {route.name: route for route in routes.values()}
    if git is None or not git.password:
        return ProxiedCredentials(routes=by_name, variables=variables)
    placeholders = _placeholders([git.password], known)
    by_name[GIT_ROUTE] = _route(GIT_ROUTE, git.base, "repository.url", placeholders, git=True)
    return ProxiedCredentials(routes=by_name, variables=variables, git=git)


def _model_route(
    endpoint: ModelEndpoint, env: Mapping[str, str], placeholders: tuple[Placeholder, ...]
) -> CredentialRoute:
    for name in endpoint.unless:
        if env.get(name, "").strip().lower() not in _OFF:
            raise CredentialsError(
                f"sandbox.credentials is proxy, and {name} is set: with it the agent signs its"
                " requests itself, so that no credential can be put in; unset it, or leave"
                " sandbox.credentials out"
            )
    base = env.get(endpoint.base_url, "").strip() or endpoint.default
    name = endpoint.base_url.lower().replace("_", "-")
    return _route(name, base, endpoint.base_url, placeholders)


def _placeholders(values: Iterable[str], known: dict[str, Placeholder]) -> tuple[Placeholder, ...]:
    """Return a placeholder for each credential; one that is used twice has one."""
    for value in values:
        if len(value) < SHORTEST_CREDENTIAL or not value.isascii() or not value.isprintable():
            raise CredentialsError(
                "sandbox.credentials is proxy, and a credential of the agent is shorter than"
                f" {SHORTEST_CREDENTIAL} characters, or has some that no header can hold"
            )
        known.setdefault(value, placeholder_for(value))
    return tuple(dict.fromkeys(known[value] for value in values))


def _route(
    name: str, base: str, key: str, placeholders: tuple[Placeholder, ...], *, git: bool = False
) -> CredentialRoute:
    parts = split_endpoint(base)
    if parts is None or has_more(base, parts) or has_dots(parts.path):
        raise CredentialsError(
            f"sandbox.credentials is proxy, and {key} is not an address such as https://host/path,"
            " without a name, a password, a query or dots"
        )
    tls = parts.scheme == "https"
    try:
        host = canonical_host(parts.hostname or "")
    except ValueError as error:
        raise CredentialsError(f"sandbox.credentials is proxy, and of {key} {error}") from error
    return CredentialRoute(
        name=name,
        tls=tls,
        host=host,
        port=parts.port or (443 if tls else 80),
        within=parts.path.rstrip("/"),
        placeholders=placeholders,
        git=git,
    )


def _git_settings(env: Mapping[str, str], settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return settings of git as variables, behind those that the environment has."""
    count = env.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdigit() else 0
    variables: dict[str, str] = {}
    for index, (key, value) in enumerate(settings, first):
        variables |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return variables | {"GIT_CONFIG_COUNT": str(first + len(variables) // 2)}
