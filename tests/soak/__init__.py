"""Full load for long: that memory, descriptors, threads and the write-ahead log stay as they are.

``python -m tests.soak --simulated`` lives through hours of virtual time in minutes;
``python -m tests.soak --real`` has a daemon run real agents, as fast as it can.
"""
