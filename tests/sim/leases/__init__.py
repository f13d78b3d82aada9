"""Days of several daemons that lead the same workflows by turns, with leases in one database.

Everything that is not the loop, the scheduler, recovery, the journal, the worker and the store's
rows is pretend: clocks, networks, the server of the database, watchdogs, hosts and the tracker.
What no lease can prevent is left out: a boot clock that stands still while its machine is paused,
and a message that travels for longer than the last seconds of a lease.
"""
