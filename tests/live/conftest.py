"""What tests of real agents behind a daemon share with those of whole daemons."""

from tests.e2e.conftest import fleet, loaded, place, start

__all__ = ["fleet", "loaded", "place", "start"]
