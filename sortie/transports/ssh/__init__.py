"""Remote hosts as places of runs, reached by SSH.

asyncssh lives in one asyncio thread. It is heavy, so the package is imported for the first remote
host only: a daemon without remote hosts does not pay for it.
"""
