"""The memory of answers: what it counts is what it holds, however often answers are replaced."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from typing import Any

from sortie.trackers.http.answers import Answer
from sortie.trackers.http.etags import ETagMemory, size_of


def answer_of(body: Any, tag: str = '"one"') -> Answer:
    """Return an answer with this body."""
    content = json.dumps(body).encode()
    return Answer(status=200, url="https://x/y", headers={"etag": tag}, content=content)


def issues(count: int, text: str) -> list[dict[str, Any]]:
    """Return a page of issues such as trackers send."""
    return [
        {
            "id": 10_000 + number,
            "number": number,
            "title": f"{text} {number}",
            "body": f"{number} {text * 3}",
            "labels": [{"id": 7000 + n, "name": f"label {n}", "color": "aabbcc"} for n in range(4)],
            "assignees": [{"login": "ann", "id": 9999}],
            "url": f"https://api.example.org/repos/o/r/issues/{number}",
            "closed": None,
            "created_at": "2026-11-01T10:00:00Z",
        }
        for number in range(count)
    ]


def test_the_running_sum_is_that_of_a_recount() -> None:
    """After thousands of answers that replace each other, push others out and are forgotten."""
    draw = random.Random(5)
    memory = ETagMemory(limit=200_000, entries=40)
    keys = [(f"https://x/{number}", "") for number in range(60)]

    for _ in range(3000):
        key = draw.choice(keys)
        match draw.randrange(10):
            case 0:
                memory.forget(key)
            case 1:
                memory.get(key)
            case 2:
                memory.put(key, answer_of([1], tag=""))
            case 3:
                memory.put(key, answer_of("x" * draw.randrange(300_000)))
            case _:
                memory.put(key, answer_of(issues(draw.randrange(12), "word")))
        held = [answer for known in keys if (answer := memory.get(known)) is not None]
        assert memory.size == sum(map(size_of, held))
        assert memory.size <= 200_000
        assert len(memory) == len(held) <= 40

    for key in keys:
        memory.forget(key)
    assert (memory.size, len(memory)) == (0, 0)


def test_what_is_counted_is_what_is_held() -> None:
    """Within a fifth of the memory that Python takes for it, what was parsed included."""
    pages = [answer_of(issues(100, f"page {number} has words")) for number in range(20)]
    memory = ETagMemory()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()

    for number in range(len(pages)):
        memory.put((f"https://x/{number}", ""), pages.pop(0))
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert 0.8 < memory.size / held < 1.25


def test_an_answer_that_is_kept_reads_as_before() -> None:
    """Without its bytes, and as the same object each time."""
    memory = ETagMemory()
    memory.put(("https://x", ""), answer_of({"id": 7}))

    kept = memory.get(("https://x", ""))

    assert kept is not None
    assert (kept.content, kept.has_body, kept.json()) == (b"", True, {"id": 7})
    assert kept.json() is kept.json()
