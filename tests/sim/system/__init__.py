"""The whole system in a simulated world: real loop, worker, workspaces, recovery and store.

Everything outside the daemon is pretend, outlives the daemon's lives, and fails on a schedule
that one seed decides; time is trio's virtual clock, so that a seed replays exactly.
"""
