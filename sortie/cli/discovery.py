"""Find the daemon of a workflow file, also while the file is broken: then it is looked for."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct

from sortie.cli.arguments import DEFAULT_WORKFLOW, NoWorkflowFile, Source
from sortie.cli.format import utc
from sortie.cli.output import note
from sortie.daemon.endpoint_file import (
    DaemonEndpoint,
    NoEndpointFile,
    endpoint_path,
    is_at_work,
    read_endpoint,
)
from sortie.daemon.locks import database_lock_path, holder_of
from sortie.model import SortieError
from sortie.workflow.database_path import database_path

if TYPE_CHECKING:
    from sortie.config.store import StoreSettings


class NoDaemon(SortieError):
    """No daemon answers now; one may later."""


class DaemonPlace(Struct, frozen=True, kw_only=True):
    """Where the daemon of a workflow file leaves word.

    Files of the daemon lie beside ``db_path``, also where ``store`` is a server that has the rows.
    ``guessed``: the file cannot be read, and the database is what can be told of it all the same.
    """

    source: Source
    db_path: str
    store: StoreSettings | None = None
    guessed: bool = False

    @property
    def database(self) -> str | StoreSettings:
        """Where the rows are: a file by its path, or a server."""
        return self.db_path if self.store is None else self.store

    def daemon(self) -> DaemonEndpoint:
        """Return the daemon that runs here.

        Raises NoDaemon where there is none, and SortieError where it cannot be reached from here.
        """

        try:
            endpoint = read_endpoint(self.db_path)
        except NoEndpointFile as error:
            raise self._none() from error
        who = f"pid {endpoint.process.pid}, since {utc(endpoint.started_at)}"
        if not endpoint.is_here():
            raise SortieError(
                f"the daemon of {self.source.workflow} ({who}) is on the machine {endpoint.host},"
                " and can be asked only there"
            )
        if not is_at_work(self.db_path, endpoint):
            raise self._none(
                f" the last one ({who}) ended without taking its leave: nobody holds"
                f" {database_lock_path(self.db_path)};"
            )
        return endpoint

    def _none(self, why: str = "") -> NoDaemon:

        workflow = self.source.workflow
        holder = holder_of(database_lock_path(self.db_path))
        if holder is not None:
            return NoDaemon(
                f"the daemon of {workflow} ({holder}) cannot be reached yet: it first ends what an"
                f" earlier one left, or it could not write {endpoint_path(self.db_path)}; its log"
                " tells"
            )
        name = "" if workflow == DEFAULT_WORKFLOW else f" {quote(os.fspath(workflow))}"
        return NoDaemon(
            f"no daemon runs for {workflow} (database {self.db_path});{why} start one with"
            f" 'sortie run{name}'"
        )


def locate(source: Source) -> DaemonPlace:
    """Return where the daemon of a workflow file is to be looked for.

    Where the file cannot be read that is said on stderr. Raises NoWorkflowFile where there is none:
    a word that names no file would else stand for the database that happens to lie beside it.
    """
    options = source.options()
    found = database_path(options.workflow, options.environ, options.env_file)
    if found.problem is not None:
        if os.path.isdir(source.workflow):
            raise NoWorkflowFile(f"{source.workflow} is a directory; name the workflow file")
        if not os.path.lexists(source.workflow) and not _has_vanished(source, found.path):
            source.require()
        note(f"sortie: {source.workflow} is not valid as read here: {found.problem}")
    return DaemonPlace(
        source=source,
        db_path=found.path,
        store=found.store,
        guessed=found.problem is not None,
    )


def _has_vanished(source: Source, db_path: str) -> bool:
    """Tell whether a workflow file that is not there was there before.

    Under the default name it was where a database is; under any other a daemon has to name it.
    """

    if source.workflow == DEFAULT_WORKFLOW:
        return os.path.lexists(db_path) or os.path.lexists(endpoint_path(db_path))
    try:
        daemons = read_endpoint(db_path).workflow
    except SortieError:
        return False
    return os.path.realpath(daemons) == os.path.realpath(source.workflow)
