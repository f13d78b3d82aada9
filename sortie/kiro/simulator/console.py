"""Write what Kiro writes, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from io import RawIOBase

COLOURED_MARKER = b"\x1b[38;5;141m> \x1b[0m"
_MCP_WARNING = "Failed to retrieve MCP settings; MCP functionality disabled"
_BAD_KEY = "Authentication failed. Your API key may be invalid or expired."
_LINE = "The quick brown fox jumps over the lazy dog; this line is filling. **Markdown** too"
_BLOCK = 64 * 1024


class Console:
    """Kiro's stdout and stderr; everything is written at once.

    Output that cannot be written raises OSError, except by ``complain``.
    """

    def __init__(self, out: RawIOBase, err: RawIOBase) -> None:
        self._out = out
        self._err = err

    def answer(self, text: str) -> None:
        """Print an answer behind its coloured marker; no end of line follows it."""
        self.print(COLOURED_MARKER + text.encode(errors="replace"))

    def print(self, data: bytes) -> None:
        _write_all(self._out, data)

    def complain(self, text: str) -> None:
        """Print a line on stderr."""
        try:
            self._complain_raw(text.encode(errors="replace") + b"\n")
        except OSError:
            pass

    def progress(self, step: int) -> None:
        """Draw a progress line over the last one, with the cursor hidden."""
        frame = "⠋⠙⠹⠸⠼⠴⠦⠧"[step % 8]
        self.print(f"\r\x1b[?25l\x1b[38;5;244m{frame} Thinking...\x1b[0m".encode())

    def end_progress(self) -> None:
        self.print(b"\r\x1b[2K\x1b[?25h")

    def mcp_warning(self) -> None:
        self._complain_raw(f"\x1b[33m{_MCP_WARNING}\x1b[0m\n".encode())

    def bad_key(self) -> None:
        self._complain_raw(f"\x1b[31m{_BAD_KEY}\x1b[0m\n".encode())

    def tool(self, style: str) -> None:
        """Show the use of a tool: old versions do it on stdout, new ones on stderr."""
        block = (
            "\x1b[38;5;141m🛠️  Using tool: fs_write\x1b[38;5;2m (trusted)\x1b[0m\n"
            "\x1b[38;5;141m ⋮ \x1b[0m\n"
            "\x1b[38;5;141m ● \x1b[0mPath: SORTIE_DEMO.md\n\n"
            "\x1b[38;5;141m ● \x1b[0mCompleted in 0.2s\n\n"
        ).encode()
        if style == "old":
            self.print(block)
        elif style == "new":
            self._complain_raw(block)

    def trailer(self, credits_text: str, seconds: int) -> None:
        """Print the line that proves that the turn ran."""
        text = f" ▸ Credits: {credits_text} • Time: {seconds}s"
        self._complain_raw(f"\n\x1b[38;5;244m{text}\x1b[0m\x1b[?25h\n\n".encode())

    def _complain_raw(self, data: bytes) -> None:
        _write_all(self._err, data)


def _write_all(stream: RawIOBase, data: bytes) -> None:
    while data:
        data = data[stream.write(data) or 0 :]


def filling(size: int, *, lines: bool) -> Iterator[bytes]:
    """Yield blocks of text, ``size`` bytes in all, as lines or as one line."""
    unit = (_LINE + ("\n" if lines else " ")).encode()
    block = unit * (_BLOCK // len(unit))
    while size > 0:
        yield block[:size]
        size -= len(block)
