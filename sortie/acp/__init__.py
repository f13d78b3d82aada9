"""The Agent Client Protocol, version 1, as plain values: bytes in, messages and events out.

No module in here does I/O, knows a clock or starts a task. ``client`` is the client's side of one
connection; ``events`` is what that tells.
"""
