"""What each run has said and done, kept in a file for each run: written, bounded, and read.

Output comes in chunks from up to a thousand agents and must cost the daemon little. So a chunk
stays one text until the writer's thread cuts it into lines, removes secrets, compresses and appends
it. A file is a row of gzip members whose headers say which lines they hold: a page is found without
reading what precedes it, and a member that a crash cut short spoils no other.

``TranscriptSink`` collects facts, ``TranscriptWriter`` is the task that writes them, and
``read_page`` reads, beside a daemon that writes or without one.
"""

from sortie.telemetry.transcripts.entries import Kind, TranscriptLine, as_text
from sortie.telemetry.transcripts.files import directory_of, is_run_id
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
