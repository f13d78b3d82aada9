"""JSON-RPC 2.0 on a byte stream, as plain values: bytes in, messages and events out.

No module in here does I/O, knows a clock or starts a task. ``wire`` frames messages and serves
either side; ``values`` reads what may be missing or of another type.
"""
