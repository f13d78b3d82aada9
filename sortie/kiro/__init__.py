"""What is known of kiro-cli: its command line, its transcript and what its exit means.

Plain functions and values, without I/O. This module stays empty, so that the simulator below it
starts fast.
"""
