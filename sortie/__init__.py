"""Sortie turns the issues of a tracker into runs of a coding agent."""

__version__ = "0.2.0"
