"""Measurements, to be run by hand; ``docs/performance.md`` says what they showed.

``python -m tests.benchmarks.remote`` measures turns on a remote host, ``python -m
tests.benchmarks.local`` the scheduler and the store. ``pytest tests/benchmarks`` runs small ones.
"""
