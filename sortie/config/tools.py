"""The setting ``tools``: which tools of Sortie's the agents have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic_core import PydanticCustomError

from sortie.config.values import CheckWithSchema, needs
from sortie.model.tools import ToolName

_NAMES = tuple(name.value for name in ToolName)
ALL = "all"


def _tools(value: Any) -> Any:
    """Accept ``all`` or a list of names, each once."""
    if value == ALL:
        return tuple(ToolName)
    if not isinstance(value, list | tuple):
        raise needs(f"{ALL}, or a list of {', '.join(_NAMES)}")
    for at, name in enumerate(value):
        if name not in _NAMES:
            wrong = {"what": f"needs one of {', '.join(_NAMES)}", "item": at}
            raise PydanticCustomError("needs", "{what}", wrong)
    return tuple(ToolName(name) for name in dict.fromkeys(value))


TOOLS_SHAPE: dict[str, Any] = {
    "oneOf": [
        {"const": ALL},
        {"type": "array", "items": {"enum": list(_NAMES)}},
    ]
}

Tools = Annotated[tuple[ToolName, ...], CheckWithSchema(_tools, shape=TOOLS_SHAPE)]
"""Tools by their names; ``all`` is all there are."""
