"""How a secret can be spelled where it stands in another text; pure."""

from __future__ import annotations

import json
from collections.abc import Set
from urllib.parse import quote

SHORTEST_SECRET = 4
"""Characters of a secret; a shorter one would be found in words that have nothing to do with it."""


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
