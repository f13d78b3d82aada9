"""The rows about what is recorded: in a file, and on a server that daemons share."""

from __future__ import annotations

from tests.benchmarks import inner, leases, stores
from tests.benchmarks.row import Row

STORE_ROWS = (
    Row(
        name="store.commit",
        what="a commit of one record, synchronized to disk",
        unit="ms",
        baseline="a page written and synchronized",
        measure=inner.store,
    ),
    Row(
        name="leases.statements",
        what="20 daemons with 100 workflows share 50 slots: statements of the server a second",
        unit="1/s",
        bar=200,
        baseline="none",
        measure=leases.leases,
    ),
    Row(
        name="store.server",
        what="a run with its rows on a PostgreSQL server: CPU, over that with a file",
        unit="times",
        bar=1.3,
        baseline="none",
        measure=stores.stores,
    ),
)
