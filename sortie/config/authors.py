"""Settings that say whose words count."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic_core import PydanticCustomError

from sortie.config.values import CheckWithSchema, needs
from sortie.model.texts import NOT_ON_A_LINE


def _authors(*words: str) -> CheckWithSchema:
    """Accept one of these words, or a list of names."""
    accepted = f"{', '.join(words)} or a list of names"

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in words:
            return value
        if not isinstance(value, list | tuple) or not value:
            raise needs(accepted)
        for at, name in enumerate(value):
            if not isinstance(name, str) or NOT_ON_A_LINE.search(name) or not name.strip():
                wrong = {"what": "needs a name on one line", "item": at}
                raise PydanticCustomError("needs", "{what}", wrong)
        return tuple(name.strip() for name in value)

    shape = {
        "oneOf": [
            {"type": "string", "enum": list(words)},
            {"type": "array", "items": {"type": "string"}},
        ]
    }
    return CheckWithSchema(check, shape=shape)


Authors = Annotated[Literal["write", "anyone"] | tuple[str, ...], _authors("write", "anyone")]
"""Whose words count at the forge: of those who may push, of anybody, or of these."""

TrackerAuthors = Annotated[
    Literal["write", "members", "anyone"] | tuple[str, ...], _authors("write", "members", "anyone")
]
"""Whose words count at the tracker: as Authors, or of those who belong to the project."""
