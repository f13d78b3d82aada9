"""Find the daemon of a workflow file, also while the file is broken: that is when it is looked for.

Rule 1: a daemon is believed in only while the very process that wrote of itself lives here, or
holds the lock of the database: in a container the boot's id, by which processes are known again,
may be another one for the daemon's unit than for a shell.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct

from sortie.cli.arguments import DEFAULT_WORKFLOW, NoWorkflowFile, Source
from sortie.cli.format import utc
from sortie.cli.output import note
from sortie.model import SortieError, WorkflowError

if TYPE_CHECKING:
    from sortie.config import DecodeContext
    from sortie.daemon.endpoint_file import DaemonEndpoint
    from sortie.daemon.options import RunOptions
    from sortie.documents import Node

_DB_PATH = re.compile(r"^db_path:.*$", re.MULTILINE)


class NoDaemon(SortieError):
    """No daemon answers now; one may later."""


class DaemonPlace(Struct, frozen=True, kw_only=True):
    """Where the daemon of a workflow file leaves word.

    ``guessed``: the file is not valid, and the database is what can be told of it all the same.
    """

    source: Source
    db_path: str
    guessed: bool = False

    def daemon(self) -> DaemonEndpoint:
        """Return the daemon that runs here.

        Raises NoDaemon where there is none, and SortieError where it cannot be reached from here.
        """
        from sortie.daemon.endpoint_file import NoEndpointFile, read_endpoint
        from sortie.daemon.locks import database_lock_path, holding_pid

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
        lock = database_lock_path(self.db_path)
        if not endpoint.is_alive() and holding_pid(lock) != endpoint.process.pid:
            raise self._none(
                f" the last one ({who}) ended without taking its leave: nobody holds {lock};"
            )
        return endpoint

    def _none(self, why: str = "") -> NoDaemon:
        from sortie.daemon.endpoint_file import endpoint_path
        from sortie.daemon.locks import database_lock_path, holder_of

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

    Where the file is not valid that is said on stderr, and what can be read of it is gone by.
    Raises NoWorkflowFile where there is none: a word that names no file would else stand for the
    database that happens to lie beside it.
    """
    from sortie.daemon.workflow_file import load_workflow

    options = source.options()
    try:
        return DaemonPlace(source=source, db_path=load_workflow(options).settings.db_path)
    except WorkflowError as error:
        place = DaemonPlace(source=source, db_path=_salvaged(options), guessed=True)
        if os.path.isdir(source.workflow):
            raise NoWorkflowFile(
                f"{source.workflow} is a directory; name the workflow file"
            ) from error
        if not os.path.lexists(source.workflow) and not _has_vanished(source, place.db_path):
            source.require()
        note(_complaint(source, error))
        return place


def _has_vanished(source: Source, db_path: str) -> bool:
    """Tell whether a workflow file that is not there was there before.

    Under the default name it was where a database is; under any other a daemon has to name it.
    """
    from sortie.daemon.endpoint_file import endpoint_path, read_endpoint

    if source.workflow == DEFAULT_WORKFLOW:
        return os.path.lexists(db_path) or os.path.lexists(endpoint_path(db_path))
    try:
        daemons = read_endpoint(db_path).workflow
    except SortieError:
        return False
    return os.path.realpath(daemons) == os.path.realpath(source.workflow)


def _complaint(source: Source, error: WorkflowError) -> str:
    errors = [problem for problem in error.problems if problem.severity == "error"]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"sortie: {source.workflow} is not valid as read here: {errors[0]}{more}"


def _salvaged(options: RunOptions) -> str:
    """Return the database by what can still be read: overrides, front matter, default."""
    from sortie.config.overrides import overlay
    from sortie.config.references import resolve
    from sortie.config.values import Lookup
    from sortie.documents import Node, Place

    context = _decode_context(options)
    here = Place(source=str(options.workflow), line=1, column=1)
    written = _written(options)
    entries: dict[str, Node] = {} if written is None else {"db_path": written}
    document, _ = overlay(Node(value=entries, origin=here), context)
    node = document.at(("db_path",))
    found = None if node is None else resolve(node, Lookup.PATH, context).node
    if found is None or not isinstance(found.value, str):
        return str(context.directory / ".sortie.db")
    return found.value


def _written(options: RunOptions) -> Node | None:
    """Return ``db_path`` as it stands in the front matter, also in one that is no YAML."""
    from sortie.workflow.files import FileRefused, read_text
    from sortie.workflow.front_matter import split_workflow

    source = str(options.workflow)
    try:
        text = read_text(options.workflow, source)
    except FileRefused:
        return None
    document = split_workflow(text, source).document
    if document is not None:
        return document.at(("db_path",))
    line = _DB_PATH.search(text.lstrip().split("\n---", 1)[0])
    if line is None:
        return None
    alone = split_workflow(f"---\n{line[0]}\n---\n", source).document
    return None if alone is None else alone.at(("db_path",))


def _decode_context(options: RunOptions) -> DecodeContext:
    from sortie.config import DecodeContext
    from sortie.workflow.env_file import read_env_file

    lines = read_env_file(options.env_file).lines if options.env_file else {}
    home = os.path.expanduser("~")
    return DecodeContext(
        path=str(options.workflow),
        directory=PurePosixPath(options.workflow.absolute().parent),
        identity="",
        home=home if home != "~" else "",
        env=options.environ,
        env_file=lines,
    )
