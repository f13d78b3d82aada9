"""The fixtures of the end-to-end tests, for examples too."""

from tests.e2e.conftest import fleet, loaded, place, start

__all__ = ["fleet", "loaded", "place", "start"]
