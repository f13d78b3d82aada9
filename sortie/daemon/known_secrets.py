"""The secrets that no text of a daemon may hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Set

MINTED_KEPT = 16
"""Tokens of a GitHub App that are remembered: each is good for an hour, and one is minted every 50
minutes."""


class KnownSecrets:
    """Tells the writers of texts which secrets to hide.

    What a run may have been given stays hidden when the settings name something else.
    """

    def __init__(self, secrets: Set[str]) -> None:
        self._named = frozenset(secrets)
        self._minted: deque[str] = deque(maxlen=MINTED_KEPT)
        self._users: list[Callable[[frozenset[str]], object]] = []

    @property
    def values(self) -> frozenset[str]:
        """All of them."""
        return self._named.union(self._minted)

    def tell(self, user: Callable[[frozenset[str]], object]) -> None:
        """Call ``user`` with all of them now, and again with each change."""
        self._users.append(user)
        user(self.values)

    def name(self, secrets: Set[str]) -> None:
        """Know those of other settings as well."""
        self._named |= secrets
        self._changed()

    def mint(self, token: str) -> None:
        """Know a token that lives for an hour."""
        if token not in self.values:
            self._minted.append(token)
            self._changed()

    def _changed(self) -> None:
        for user in self._users:
            user(self.values)
