"""What is Gitea's own, and Forgejo's, among the services over HTTP: its errors."""

from __future__ import annotations

from sortie.http.requests import Provider

API = "/api/v1"
"""Where the API is below the address of a server."""

PAGE = 50
"""Items of a page; by default a server gives no more."""

PROVIDER = Provider(name="Gitea")


def api_of(address: str) -> str:
    """Return the address of the API of a server, which may have been given itself."""
    return f"{address.rstrip('/').removesuffix(API)}{API}"
