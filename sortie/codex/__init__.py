"""The protocol of Codex's app-server, version 2, as plain values: bytes in, events out.

No module in here does I/O, knows a clock or starts a task. ``client`` is the client's side of one
connection, ``events`` is what that tells, and ``approvals`` is how what Codex asks is answered.
"""
