"""The kinds of value that a setting can have, beyond those of pydantic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    GetJsonSchemaHandler,
    PlainSerializer,
    SecretStr,
    SerializeAsAny,
)
from pydantic_core import CoreSchema, PydanticCustomError

from sortie.config.references import Lookup
from sortie.model.secrets import SHORTEST_SECRET
from sortie.model.texts import NOT_ON_A_LINE

V = TypeVar("V")


LARGEST = 10**15
"""No number in a WORKFLOW.md may exceed this; in milliseconds it is some 30,000 years."""


def _long_enough(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value().strip()) < SHORTEST_SECRET:
        raise ValueError(
            f"needs a secret of at least {SHORTEST_SECRET} characters; wherever its text stands, "
            "also inside other words, it is hidden"
        )
    return secret


Secret = Annotated[SecretStr, AfterValidator(_long_enough)]
"""A text that must not be shown: it prints, formats and serializes as asterisks."""


PathText = Annotated[str, Lookup.PATH]
"""A path in a settings block.

In WORKFLOW.md a whole-value ``$VAR`` is looked up in it, ``~`` is the home directory, and a
relative path is relative to the file; what the model holds is absolute.
"""


HostPathText = Annotated[str, Lookup.HOST_PATH]
"""A path on a remote host: as PathText, but one that begins with ``~`` is left as it is."""


def needs(what: str) -> PydanticCustomError:
    """Return the error that says what a setting accepts; decoding adds what stands there."""
    return PydanticCustomError("needs", "{what}", {"what": f"needs {what}"})


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class CheckWithSchema(BeforeValidator):
    """A check that tells a JSON Schema, too, what it accepts."""

    shape: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.shape)


def _numbers(minimum: int, maximum: int) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "integer"}
    if minimum != -LARGEST:
        shape["minimum"] = minimum
    if maximum != LARGEST:
        shape["maximum"] = maximum
    return shape


def whole(minimum: int, maximum: int = LARGEST) -> BeforeValidator:
    """Accept whole numbers within bounds, and nothing that merely looks like one."""
    bounds = f"of at least {minimum}" if maximum == LARGEST else f"from {minimum} to {maximum}"

    def check(value: Any) -> Any:
        if not _is_whole(value) or not minimum <= value <= maximum:
            raise needs(f"a whole number {bounds}")
        return value

    return CheckWithSchema(check, shape=_numbers(minimum, maximum))


def amount() -> BeforeValidator:
    """Accept numbers of at least 0, whole or not, and nothing that merely looks like one."""

    def check(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= LARGEST:
            raise needs("a number of at least 0")
        return float(value)

    return CheckWithSchema(check, shape={"type": "number", "minimum": 0})


def milliseconds(minimum: int = -LARGEST, maximum: int = LARGEST) -> BeforeValidator:
    """Accept whole milliseconds within bounds and turn them into seconds."""
    bounds = "" if minimum == -LARGEST else f" of at least {minimum}"
    if maximum != LARGEST:
        bounds = f" from {minimum} to {maximum}"

    def check(value: Any) -> float:
        if not _is_whole(value) or not minimum <= value <= maximum:
            raise needs(f"a whole number of milliseconds{bounds}")
        return float(value) / 1000

    return CheckWithSchema(check, shape=_numbers(minimum, maximum))


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _line(text: str) -> str:
    if NOT_ON_A_LINE.search(text):
        raise needs("a text on one line")
    return _not_blank(text).strip()


Line = Annotated[str, AfterValidator(_line)]
"""A text on one line that is not blank; white space around it is removed."""


Script = Annotated[str, AfterValidator(_not_blank)]
"""A text of one or more lines that is not blank."""


def _command(value: Any) -> Any:
    match value:
        case None:
            return None
        case str() if value.strip():
            return value
        case list() | tuple() if value and all(isinstance(part, str) for part in value):
            if str(value[0]).strip():
                return tuple(value)
        case list() | tuple() if value:
            wrong = next(at for at, part in enumerate(value) if not isinstance(part, str))
            raise PydanticCustomError("string_type", "needs a text", {"item": wrong})
    raise needs("a program as a text, or a list of texts: the program and its arguments")


Command = Annotated[str | tuple[str, ...] | None, BeforeValidator(_command)]
"""A program and its arguments: an argv, or a text that is split later."""

State = Annotated[Line, Lookup.WHOLE]
"""The name of a tracker's state."""


def matching(pattern: str, what: str) -> AfterValidator:
    """Accept texts that match a pattern as a whole."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text, re.ASCII) is None:
            raise needs(what)
        return text

    return AfterValidator(check)


def _time_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise needs("the name of a time zone, as Europe/Berlin or UTC") from None
    return text


TimeZone = Annotated[str, AfterValidator(_time_zone)]
"""The name of a time zone of the IANA database."""


VariableName = Annotated[str, matching(r"[A-Za-z_]\w*", "the name of an environment variable")]

_HOST = r"(?:[\w.~+-]+@)?(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[A-Za-z0-9_][\w.-]*)(?::(\d{1,5}))?"


def _ssh_host(text: str) -> str:
    found = re.fullmatch(_HOST, text, re.ASCII)
    if found is None or text.startswith("-") or not 0 < int(found[1] or 22) < 65536:
        raise needs("[user@]host[:port] or a name from the ssh configuration")
    return text


SshHost = Annotated[str, AfterValidator(_ssh_host)]
"""Where to connect to: ``[user@]host[:port]``, or an alias of the ssh configuration."""


def choice(*accepted: str) -> BeforeValidator:
    """Accept one of these words."""

    def check(value: Any) -> Any:
        if value not in accepted or not isinstance(value, str):
            words = ", ".join(accepted[:-1])
            raise needs(f"{words} or {accepted[-1]}")
        return value

    return CheckWithSchema(check, shape={"type": "string", "enum": list(accepted)})


class Frozen(Mapping[str, V]):
    """A mapping that cannot be changed."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


_freeze_limits: Callable[[Mapping[str, int]], Mapping[str, int]] = Frozen

Limits = Annotated[
    Mapping[str, int],
    AfterValidator(_freeze_limits),
    PlainSerializer(dict, return_type=dict[str, int]),
]
"""Numbers by the compared form of a state; it cannot be changed."""

_freeze_blocks: Callable[[Mapping[str, BaseModel]], Mapping[str, BaseModel]] = Frozen

Blocks = Annotated[
    Mapping[str, SerializeAsAny[BaseModel]],
    AfterValidator(_freeze_blocks),
    PlainSerializer(dict, return_type=dict[str, SerializeAsAny[BaseModel]]),
]
"""The blocks of adapters by name; it cannot be changed."""
