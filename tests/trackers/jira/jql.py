"""As much of Jira's query language as its test server has to understand, and no more lenient.

Strings follow the published grammar: an unknown escape, an empty list, or a control character is
a syntax error. A query needs a restriction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
Test = Callable[[Record], bool]

_TOKEN = re.compile(
    r"""
      \s+
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["'\\\ tnr]|u[0-9a-fA-F]{4}))*"
              |'(?:[^'\\\x00-\x1f]|\\(?:["'\\\ tnr]|u[0-9a-fA-F]{4}))*')
    | (?P<sign>!=|>=|<=|!~|[=~<>(),])
    | (?P<word>[^\s"'=!<>~(),\\]+)
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_PLAIN = {"t": "\t", "n": "\n", "r": "\r"}


class JqlError(Exception):
    """A query is refused; the text is what Jira says."""


@dataclass(frozen=True)
class Query:
    """A query that was understood."""

    test: Test
    order: tuple[str, ...]


def parse(text: str, values: Mapping[str, Callable[[Record, str, str], bool]]) -> Query:
    """Return a query; ``values`` are its fields: they take a record, an operator and a value.

    Raises JqlError.
    """
    return _Parser(_tokens(text), values).query()


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise JqlError(f"Error in the JQL Query: character {place + 1} {text[place]!r}.")
        place = found.end()
        if found["string"] is not None:
            tokens.append(("value", _ESCAPE.sub(_unescaped, found["string"][1:-1])))
        elif found["sign"] is not None:
            tokens.append(("sign", found["sign"]))
        elif found["word"] is not None:
            tokens.append(("word", found["word"]))
    return tokens


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _PLAIN.get(code, code)


class _Parser:
    def __init__(
        self,
        tokens: list[tuple[str, str]],
        values: Mapping[str, Callable[[Record, str, str], bool]],
    ) -> None:
        self._tokens = tokens
        self._values = values

    def query(self) -> Query:
        test = self._or()
        order: list[str] = []
        if self._takes("order"):
            self._needs("by")
            order.append(self._field())
            while self._takes_sign(","):
                order.append(self._field())
        if self._tokens:
            raise JqlError(f"Error in the JQL Query: {self._tokens[0][1]!r} was not expected.")
        return Query(test, tuple(order))

    def _field(self) -> str:
        kind, name = self._next()
        if kind != "word":
            raise JqlError(f"Error in the JQL Query: {name!r} is no field.")
        if not self._takes("desc"):
            self._takes("asc")
        return name.lower()

    def _or(self) -> Test:
        tests = [self._and()]
        while self._takes("or"):
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else lambda record: any(t(record) for t in tests)

    def _and(self) -> Test:
        tests = [self._not()]
        while self._takes("and"):
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else lambda record: all(t(record) for t in tests)

    def _not(self) -> Test:
        if self._takes("not"):
            inner = self._not()
            return lambda record: not inner(record)
        if self._takes_sign("("):
            test = self._or()
            self._needs_sign(")")
            return test
        return self._condition()

    def _condition(self) -> Test:
        kind, name = self._next()
        known = self._values.get(name.lower())
        if kind == "sign" or known is None:
            raise JqlError(f"Field '{name}' does not exist or you do not have permission.")
        negated = self._takes("not")
        if self._takes("in"):
            wanted = self._list()
            return lambda record: any(known(record, "=", v) for v in wanted) is not negated
        kind, operator = self._next()
        if kind != "sign" or operator in "(),":
            raise JqlError(f"Error in the JQL Query: {operator!r} is no operator.")
        value = self._value()
        return lambda record: known(record, operator, value)

    def _list(self) -> list[str]:
        self._needs_sign("(")
        found = [self._value()]
        while self._takes_sign(","):
            found.append(self._value())
        self._needs_sign(")")
        return found

    def _value(self) -> str:
        kind, value = self._next()
        if kind == "sign":
            raise JqlError(f"Error in the JQL Query: {value!r} where a value is expected.")
        return value

    def _peek(self) -> tuple[str, str]:
        return self._tokens[0] if self._tokens else ("end", "")

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise JqlError("Error in the JQL Query: it ends too early.")
        return self._tokens.pop(0)

    def _takes(self, word: str) -> bool:
        kind, text = self._peek()
        if kind == "word" and text.lower() == word:
            self._next()
            return True
        return False

    def _takes_sign(self, sign: str) -> bool:
        if self._peek() == ("sign", sign):
            self._next()
            return True
        return False

    def _needs(self, word: str) -> None:
        if not self._takes(word):
            raise JqlError(f"Error in the JQL Query: expecting {word!r}.")

    def _needs_sign(self, sign: str) -> None:
        if not self._takes_sign(sign):
            raise JqlError(f"Error in the JQL Query: expecting {sign!r}.")
