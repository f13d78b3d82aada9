"""The Agent Client Protocol, version 1, as plain values: bytes in, messages and events out.

No module in here does I/O, knows a clock or starts a task. ``wire`` frames JSON-RPC messages and
serves either side; ``client`` is the client's side of one connection; ``events`` is what that
tells; ``values`` reads what may be missing or of another type.
"""
