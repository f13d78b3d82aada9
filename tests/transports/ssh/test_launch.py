"""What is made of the words of a host that starts a program."""

from __future__ import annotations

from sortie.transports import Command
from sortie.transports.remote.launch import struck


def test_no_part_of_a_value_stays() -> None:
    """Each occurrence goes, as it is and as our script quotes it, and of two the longer first."""
    env = {"SHORT": "secret", "LONG": "secret-too", "ODD": "it's odd"}
    command = Command(argv=("x",), cwd="/", env=env)

    said = struck(rb"secret, secret-too, 'it'\''s odd', it's odd, secret and secret-too", command)

    assert said == b"[...], [...], [...], [...], [...] and [...]"
