"""What a scenarios.toml may say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sortie.model import SortieError
from sortie.testing.agent import SCENARIOS, plain_scenarios, read_scenarios
from sortie.testing.agent.scenarios import DEFAULTS
from sortie.testing.checks import NotTried


def written(folder: Path, text: str) -> Path:
    """Write a file and return its directory."""
    (folder / "scenarios.toml").write_text(text)
    return folder


def test_words_are_filled_in_everywhere(tmp_path: Path) -> None:
    """In texts, lists and tables; other braces stay as they are."""
    told = read_scenarios(
        written(
            tmp_path,
            'command = ["{python}", "{here}/a.py"]\n[env]\nHOME = "{scratch}"\n'
            '[scenarios]\nsuccess = "say {x}"\n'
            'secret = { prompt = "p", secret = "s", env = { A = "{here}" } }\n',
        ),
        Path("/scratch"),
    )

    assert told.command == (sys.executable, f"{tmp_path}/a.py")
    assert told.env == {"HOME": "/scratch"}
    assert told.find("success").prompt == "say {x}"
    assert told.find("secret").env == {"A": str(tmp_path)}


def test_the_first_scenario_that_there_is(tmp_path: Path) -> None:
    """Where there is none, the reason is the author's for the first one, or that it is missing."""
    told = read_scenarios(
        written(tmp_path, '[scenarios]\ntool = "t"\n[impossible]\nhang = "it never hangs"\n'),
        tmp_path,
    )

    assert told.find("hang", "tool").prompt == "t"
    with pytest.raises(NotTried, match="hang: it never hangs"):
        told.find("hang")
    with pytest.raises(NotTried, match="deaf: it needs a program that misbehaves"):
        told.find("deaf")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[scenarios\n", "cannot be read"),
        ('[scenarios]\nhangs = "x"\n', "there is no scenario 'hangs'; known: success"),
        ('[impossible]\nhangs = "x"\n', "there is no scenario 'hangs'"),
        ("[scenarios]\nhang = 7\n", "scenarios.hang: "),
        ('[scenarios]\nhang = { promt = "x" }\n', "scenarios.hang.prompt: Field required"),
        ("stop_grace = 0\n", "stop_grace: Input should be greater than 0"),
        ("stop_time = 1\n", "stop_time: Extra inputs are not permitted"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    """A scenario that nobody looks for would never be tried."""
    with pytest.raises(SortieError) as error:
        read_scenarios(written(tmp_path, text), tmp_path)

    assert str(error.value).startswith(f"{tmp_path / 'scenarios.toml'}: ")
    assert told in str(error.value)


def test_what_is_asked_for_in_plain_words_are_scenarios() -> None:
    """They are read as a file's are."""
    assert DEFAULTS.keys() <= SCENARIOS.keys()
    assert plain_scenarios().scenarios.keys() == DEFAULTS.keys()
