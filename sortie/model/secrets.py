"""How a secret can be spelled where it stands in another text; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Set
from functools import lru_cache
from urllib.parse import quote

SHORTEST_SECRET = 4
"""Characters of a secret; a shorter one would be found in words that have nothing to do with it."""

SHORTEST_CREDENTIAL = 8
"""Characters of a value that only the name of its variable makes a secret."""

_CREDENTIAL = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)


def credentials_of(env: Mapping[str, str]) -> Set[str]:
    """Return the values of those variables that are named as what holds a credential is."""
    return {
        value
        for name, value in env.items()
        if _CREDENTIAL.search(name) and len(value) >= SHORTEST_CREDENTIAL
    }


def spellings(secret: str) -> Set[str]:
    """Return a secret as it is, and as it looks in a ``repr``, in JSON and in a URL.

    Empty for one that is blank.
    """
    bare = secret.strip()
    if not bare:
        return frozenset()
    return {
        secret,
        bare,
        repr(bare)[1:-1],
        json.dumps(bare)[1:-1],
        json.dumps(bare, ensure_ascii=False)[1:-1],
        quote(bare, errors="backslashreplace"),
        quote(bare, safe="", errors="backslashreplace"),
    }


def pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds some secrets in a text, however spelled; None where there are none.

    Of two that begin alike the longer one is found, so that no end of it is left.
    """
    found = {spelling for secret in secrets for spelling in spellings(secret)}
    longest_first = sorted(found, key=lambda spelling: (-len(spelling), spelling))
    return re.compile("|".join(map(re.escape, longest_first))) if found else None


def unchanged(text: str) -> str:
    """Return a text as it is: the redaction where there are no secrets."""
    return text


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return a function that puts ``***`` in the place of every secret, however spelled.

    What is too short to be one is left alone: it would be found in every other word.
    """
    return _redactor(frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET))


@lru_cache(maxsize=16)
def _redactor(known: Set[str]) -> Callable[[str], str]:
    """Return the same function for the same secrets: each turn of each run asks for it."""
    pattern = pattern_of(known)
    if pattern is None:
        return unchanged
    found = tuple({spelling for secret in known for spelling in spellings(secret)})

    def redacted(text: str) -> str:
        # To look for each is many times quicker than to match all, and mostly there is none.
        for secret in found:
            if secret in text:
                return pattern.sub("***", text)
        return text

    return redacted
