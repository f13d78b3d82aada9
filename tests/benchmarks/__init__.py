"""Measurements, to be run by hand; ``docs/performance.md`` says what they showed.

``python -m tests.benchmarks`` measures what the daemon costs. ``python -m tests.benchmarks.remote``
compares ways to run a program on a host, ``python -m tests.benchmarks.local`` measures the
scheduler and the store. ``pytest tests/benchmarks`` runs small ones, for function only.
"""
