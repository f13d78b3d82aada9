"""Permissions that an agent's adapter has people asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from hashlib import sha256

from sortie.model.questions import PERMISSION_OPTIONS, QUESTION_LIMIT, Question
from sortie.model.texts import cut

_INTRODUCTION = "The agent asks for a permission: "


class Granted(Enum):
    """For how long people have allowed something."""

    ONCE = "once"
    FOR_ISSUE = "for the issue"


class AskedPermissions:
    """What people have allowed the agent of a session, and how they are asked for more.

    ``ask`` takes a question; ``granted`` are the permissions for all of the issue, ``once`` is the
    one that may be used one time, and ``denied`` the one about which people are not asked again.
    """

    def __init__(
        self,
        ask: Callable[[Question], object],
        granted: Sequence[str],
        once: str | None,
        denied: str | None = None,
    ) -> None:
        self.denied = denied
        self._ask = ask
        self._granted = frozenset(granted)
        self._once = once

    def use(self, permission: str) -> Granted | None:
        """Return for how long people have allowed something, None where they have not; what they
        have allowed once is used up by that."""
        if permission in self._granted:
            return Granted.FOR_ISSUE
        if permission != self._once:
            return None
        self._once = None
        return Granted.ONCE

    def ask_for(self, permission: str, what: str) -> None:
        """Have people asked for a permission; ``what`` says for what, without secrets."""
        text = f"{_INTRODUCTION}{cut(what, QUESTION_LIMIT - len(_INTRODUCTION))}"
        self._ask(Question(text=text, options=PERMISSION_OPTIONS, permission=permission))


def permission_name(*parts: str) -> str:
    """Return what identifies a permission: the same for the same parts, and for no others."""
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
