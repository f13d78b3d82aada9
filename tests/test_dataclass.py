"""Our classes do what those of the library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from sortie.dataclass import dataclass as ours

T = TypeVar("T")
Decorator = Callable[..., Any]


def plain(decorator: Decorator) -> type[Any]:
    """A class with all kinds of fields."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Plain(Generic[T]):
        """Has all kinds of fields."""

        LIMIT: ClassVar[int] = 3
        name: str
        count: float = 0.5
        parts: tuple[int, ...] = ()
        made: list[int] = field(default_factory=list, hash=False)
        hidden: str = field(default="secret", repr=False)
        loose: int = field(default=0, compare=False)
        own: int = field(default=7, init=False)
        itself: Any = None

        @property
        def doubled(self) -> float:
            return 2 * self.count

    return Plain


def positional(decorator: Decorator) -> type[Any]:
    """A class whose fields have an order, and no docstring."""

    @decorator(frozen=True, slots=True)
    class Positional:
        name: str
        count: int = 0
        late: str = field(default="", kw_only=True)

    return Positional


def special(decorator: Decorator) -> type[Any]:
    """A class with methods of its own."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Special:
        name: str
        count: int = 1

        def __post_init__(self) -> None:
            if self.count < 0:
                raise ValueError(self.count)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.count == other.count

        def __hash__(self) -> int:
            return self.count

        def __repr__(self) -> str:
            return f"<{self.name}>"

    return Special


def equal_in_its_way(decorator: Decorator) -> type[Any]:
    """A class that says what is equal, and not how that is hashed."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Equal:
        name: str
        count: int = 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

    return Equal


def empty(decorator: Decorator) -> type[Any]:
    """A class without fields."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Empty:
        """Nothing."""

    return Empty


def child(decorator: Decorator) -> type[Any]:
    """A class that inherits fields, and changes the default of one."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Parent:
        """Gives."""

        name: str
        count: int = 1

    @decorator(frozen=True, slots=True, kw_only=True)
    class Child(Parent):
        """Takes."""

        more: str = ""
        count: int = 2

    return Child


MADE = (plain, special, equal_in_its_way, empty, child)
VALUES: tuple[dict[str, Any], ...] = (
    {},
    {"name": "a"},
    {"name": "a", "count": 1},
    {"name": "a", "count": -1},
    {"name": "b", "made": [1], "hidden": "x", "loose": 9},
    {"name": "b", "made": [2], "hidden": "x", "loose": 8},
    {"name": "b", "made": [1], "hidden": "x", "loose": 8},
    {"name": "c", "more": "m"},
    {"nonsense": 1},
    {"name": ["no hash"]},
)


def outcome(act: Callable[[], object]) -> object:
    """Return what comes of it, or the kind and the words of the error."""
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def told(cls: type[Any]) -> list[object]:
    """Return all that can be seen of a class and of instances with many values."""
    made = [instance for values in VALUES if (instance := _instance(cls, values)) is not None]
    seen: list[object] = [cls.__slots__, cls.__match_args__, cls.__name__]
    seen += [
        (f.name, f.type, f.default, f.init, f.kw_only, f.compare) for f in dataclasses.fields(cls)
    ]
    seen += [outcome(lambda values=values: repr(cls(**values))) for values in VALUES]  # type: ignore[misc]
    seen += [[outcome(lambda a=a, b=b: a == b) for a in made] for b in made]  # type: ignore[misc]
    seen += [outcome(lambda each=each: hash(each)) for each in made if hasattr(cls, "name")]  # type: ignore[misc]
    seen += [each == "another kind" for each in made]
    for each in made if hasattr(cls, "name") else ():
        seen += [
            outcome(lambda each=each: setattr(each, "name", "x")),  # type: ignore[misc]
            outcome(lambda each=each: delattr(each, "name")),  # type: ignore[misc]
            outcome(lambda each=each: repr(dataclasses.replace(each, name="new"))),  # type: ignore[misc]
            repr(copy.deepcopy(each)),
            outcome(lambda each=each: dataclasses.asdict(each)).__repr__(),  # type: ignore[misc]
        ]
    return seen


def _instance(cls: type[Any], values: dict[str, Any]) -> Any:
    made = outcome(lambda: cls(**values))
    return made if isinstance(made, cls) else None


@pytest.mark.parametrize("shape", MADE, ids=lambda shape: shape.__name__)
def test_it_does_what_the_library_does(shape: Callable[[Decorator], type[Any]]) -> None:
    """Values, words, errors, equality, hashes, copies."""
    assert told(shape(ours)) == told(shape(dataclasses.dataclass))


def test_fields_may_have_an_order() -> None:
    """Without ``kw_only`` they are given and matched in it, but for those that want a name."""
    own, other = positional(ours), positional(dataclasses.dataclass)

    assert own.__match_args__ == other.__match_args__ == ("name", "count")
    assert repr(own("a", 2, late="x")) == repr(other("a", 2, late="x"))
    assert outcome(lambda: own("a", 2, "x")) == outcome(lambda: other("a", 2, "x"))


def test_what_holds_itself_can_be_shown() -> None:
    """The representation ends."""
    values: list[object] = []
    made = plain(ours)(name="a", count=1, itself=values)
    values.append(made)

    assert "itself=[...])" in repr(made)


@ours(frozen=True, slots=True, kw_only=True)
class Sent:
    """Something that goes to another process."""

    name: str
    own: int = field(default=7, init=False)


def test_it_can_be_pickled() -> None:
    """And is frozen when it comes back."""
    back = pickle.loads(pickle.dumps(Sent(name="a")))

    assert back == Sent(name="a")
    with pytest.raises(FrozenInstanceError):
        back.name = "b"


def test_nothing_is_added_to_an_instance() -> None:
    """Not even what is no field."""
    sent = Sent(name="a")

    for name in ("name", "unknown"):
        with pytest.raises(FrozenInstanceError):
            setattr(sent, name, "b")
        with pytest.raises(FrozenInstanceError):
            delattr(sent, name)


def test_other_classes_are_the_librarys() -> None:
    """Such as one that can be changed."""

    @ours(slots=True)
    class Changing:
        count: int = 0

    changing = Changing()
    changing.count += 1

    assert changing == Changing(1)


def test_the_two_do_not_mix() -> None:
    """Where they would, the module cannot be loaded."""
    with pytest.raises(TypeError, match="frozen"):

        @dataclasses.dataclass(frozen=True)
        class Mixed(Sent):
            more: int = 0
