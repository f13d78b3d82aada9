"""What each run has said and done, kept in a file for each run: written, bounded, and read.

An agent's output comes by the chunk, from a thousand agents at once, and must cost the daemon
next to nothing. So a chunk stays one text until a thread has time for it: there it is cut into
lines, rid of secrets, compressed and appended. A file is a row of gzip members, each of which
says in its header which lines it holds, so that a page is found without reading what is before
it, and a member that a crash cut short spoils nothing else.

``Transcripts`` is a sink of facts, ``TranscriptWriter`` the task that writes what it collects,
and ``read_page`` reads, beside a daemon that writes or without one.
"""

from sortie.telemetry.transcripts.directory import directory_of, is_run_id
from sortie.telemetry.transcripts.entries import Kind, TranscriptLine, as_text
from sortie.telemetry.transcripts.reader import TranscriptPage, read_page

__all__ = [
    "Kind",
    "TranscriptLine",
    "TranscriptPage",
    "as_text",
    "directory_of",
    "is_run_id",
    "read_page",
]
