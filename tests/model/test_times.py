"""Times: one way to write each moment."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from sortie.model.times import rfc3339


def test_a_time_of_another_zone_is_shown_in_utc() -> None:
    """The same moment is written the same way, whatever zone it came in."""
    east = datetime(2026, 1, 1, 2, 30, tzinfo=timezone(timedelta(hours=2)))

    assert rfc3339(east) == "2026-01-01T00:30:00.000000Z"


def test_a_time_without_a_zone_is_refused() -> None:
    """A naive time could be any moment, so it is an error and not a guess."""
    with pytest.raises(ValueError, match="without a zone"):
        rfc3339(datetime(2026, 1, 1))
