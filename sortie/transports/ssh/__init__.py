"""Remote hosts as places of runs, reached by SSH.

asyncssh lives in one asyncio thread and is imported there, at the first dial, so that a daemon
without remote hosts does not pay for it.
"""
