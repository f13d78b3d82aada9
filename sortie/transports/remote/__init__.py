"""What transports to other machines have in common: scripts for a POSIX shell there, and what they
say; pure but for reading the texts in ``sh/``.
"""
