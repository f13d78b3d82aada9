"""Measurements, to be run by hand; ``docs/performance.md`` says what they showed.

``python -m tests.benchmarks`` measures what the daemon costs; ``table`` has all rows. The tests
run each in a short mode, for function only, and count the instructions of four pure paths.
"""
