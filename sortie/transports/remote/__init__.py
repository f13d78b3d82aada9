"""What transports to other machines have in common: processes and files behind a shell there.

A transport brings a link that opens shells (``shell_link``); the scripts for them and what these
say are pure, but for reading the texts in ``sh/``.
"""
