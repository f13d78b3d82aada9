"""The memory of answers is bounded, and what it keeps reads as before."""

from __future__ import annotations

import json
from typing import Any

from sortie.http.answers import HttpAnswer
from sortie.http.etags import ETagMemory


def answer_of(body: Any, tag: str = '"one"') -> HttpAnswer:
    """Return an answer with this body."""
    content = json.dumps(body).encode()
    return HttpAnswer(status=200, url="https://x/y", headers={"etag": tag}, content=content)


def test_what_was_asked_for_longest_ago_is_forgotten_first() -> None:
    """By the bytes of all bodies, and by their number; what has no ETag, or alone is too large,
    is not remembered."""
    memory = ETagMemory(limit=1000, answers=3)
    for number in range(4):
        memory.put((f"https://x/{number}", ""), answer_of(number))
    memory.get(("https://x/1", ""))

    memory.put(("https://x/4", ""), answer_of(4))
    by_number = [n for n in range(5) if memory.get((f"https://x/{n}", ""))]
    memory.put(("https://x/5", ""), answer_of("x" * 997))
    memory.put(("https://x/6", ""), answer_of("x" * 1000))
    memory.put(("https://x/7", ""), answer_of(7, tag=""))

    assert by_number == [1, 3, 4]
    assert [n for n in range(8) if memory.get((f"https://x/{n}", ""))] == [4, 5]
    assert (memory.size, len(memory)) == (1000, 2)


def test_an_answer_that_is_kept_reads_as_before() -> None:
    """Without its bytes, and as the same object each time."""
    memory = ETagMemory()
    memory.put(("https://x", ""), answer_of({"id": 7}))

    kept = memory.get(("https://x", ""))

    assert kept is not None
    assert (kept.content, kept.has_body, kept.json()) == (b"", True, {"id": 7})
    assert kept.json() is kept.json()
