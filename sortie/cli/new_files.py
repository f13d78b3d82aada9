"""Write files that must not exist yet."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sortie.model import SortieError


def write_new(path: Path, text: str) -> bool:
    """Write a new file whole; False, and nothing done, where there is one already.

    Raises SortieError where it cannot be written, and leaves no part of it then.
    """
    content = text.encode()
    try:
        file = path.open("xb")
    except FileExistsError:
        return False
    except FileNotFoundError as error:
        raise SortieError(f"cannot write {path}: make the directory {path.parent} first") from error
    except OSError as error:
        raise SortieError(f"cannot write {path}: {error.strerror}") from error
    try:
        with file:
            file.write(content)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise SortieError(f"cannot write {path}: {error.strerror}") from error
    return True
