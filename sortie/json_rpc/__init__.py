"""JSON-RPC 2.0 on a byte stream, and what protocols of agents have in common, as plain values.

No module in here does I/O, knows a clock or starts a task. ``wire`` frames messages and serves
either side; ``connection`` is the client's side of one connection, and ``events`` what that tells;
``values`` reads what may be missing or of another type.
"""
