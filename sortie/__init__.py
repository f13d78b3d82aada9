"""Sortie turns the issues of a tracker into runs of a coding agent."""

__version__ = "0.1.0"
