"""What the site has beside the pages: the README as its first one, and the API reference.

A link that leads out of the pages, to a file of the repository, becomes the file's name: the site
has no address for it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s:]*?)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)

PUBLIC = {
    "Kiro CLI from Python": ("sortie.kiro",),
    "The port to agents": ("sortie.agents", "sortie.testing.agent"),
    "The port to trackers": ("sortie.trackers", "sortie.testing.tracker"),
    "The nouns": ("sortie.model",),
}


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that stand nowhere below ``docs``."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=readme))
    parts = ["# API reference"]
    for title, modules in PUBLIC.items():
        parts += [
            f"## {title}",
            *(f"::: {module}\n    options: {{heading_level: 3}}" for module in modules),
        ]
    files.append(File.generated(config, "api.md", content="\n\n".join(parts)))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Have links lead to pages of the site."""
    is_readme = page.file.src_uri == "index.md"
    folder = "" if is_readme else f"docs/{posixpath.dirname(page.file.src_uri)}"

    def mended(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if not target:
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        inside = "index.md" if path == "README.md" else path.removeprefix("docs/")
        if path.startswith("docs/") and files.get_file_from_path(f"{inside}/README.md"):
            inside = f"{inside}/README.md"
        if files.get_file_from_path(inside) is None or (inside == path != "index.md"):
            return text if text.startswith("`") else f"{text} (`{path}`)"
        here = posixpath.dirname(page.file.src_uri) or "."
        return f"[{text}]({posixpath.relpath(inside, here)}{anchor})"

    parts = CODE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(mended, part) for part in parts)
