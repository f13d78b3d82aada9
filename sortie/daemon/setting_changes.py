"""What differs between the settings of two workflow files, or of a rule and the top level, in the
words of the file; secrets are hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

from sortie.config.rules import Conditions
from sortie.config.settings import Rule, Settings
from sortie.config.written import written, written_fields

_DERIVED = frozenset(
    {
        "rules",
        "rule",
        "prompt",
        "stage_result",
        "tracker_block",
        "secret_variables",
        "secret_parts",
        "remote_root",
        "blocks",
    }
)
"""Fields of Settings that stand in no block of the file, or are compared by themselves."""

_NAMES_IN_A_RULE = {"worker.ssh_hosts": "hosts"}
_OWN_KEYS = ("max_concurrent_agents", "guaranteed", "burst_to", "stage")
_LONGEST = 200  # characters


class Difference(Struct, frozen=True, kw_only=True):
    """Something that other settings change; an absent value is ""."""

    what: str
    before: str
    after: str


def changed_settings(old: Settings, new: Settings) -> Iterator[Difference]:
    """Yield each setting that differs once: those of the top level, and then what else differs in
    a rule."""
    top = list(_changed(old, new))
    yield from top
    olds, news = ({rule.name: rule for rule in each.rules} for each in (old, new))
    for name in dict.fromkeys((*olds, *news)):
        was, will = olds.get(name), news.get(name)
        if was is None or will is None:
            yield Difference(what=f"rule {name}", before=_presence(was), after=_presence(will))
            continue
        of_top = {_in_a_rule(each) for each in top}
        for each in _changed_rule(was, will):
            if each not in of_top:
                yield Difference(
                    what=f"rule {name}: {each.what}", before=each.before, after=each.after
                )
    kept = [name for name in olds if name in news]
    order = [name for name in news if name in olds]
    if kept != order:
        yield Difference(what="order of rules", before=", ".join(kept), after=", ".join(order))


def settings_of_a_rule(top: Settings, name: str) -> Iterator[Difference]:
    """Yield the settings that a rule changes."""
    rule = next((rule for rule in top.rules if rule.name == name), None)
    if rule is None:
        return
    if rule.settings.prompt != top.prompt:
        before = top.prompt or "that of the top level"
        yield Difference(what="prompt", before=before, after=rule.settings.prompt)
    for each in _changed(top, rule.settings):
        yield _in_a_rule(each)
    default = Rule(name=name, when=Conditions(), settings=top)
    yield from _difference("stage", default.stage, rule.stage)


def _presence(rule: Rule | None) -> str:
    if rule is None:
        return "not there"
    return "for all issues" if rule.when == Conditions() else f"for {written(rule.when)}"


def _changed_rule(old: Rule, new: Rule) -> Iterator[Difference]:
    yield from _difference("when", old.when, new.when, whole=True)
    for key in _OWN_KEYS:
        yield from _difference(key, getattr(old, key), getattr(new, key))
    if old.settings.prompt != new.settings.prompt:
        yield Difference(
            what="prompt", before=old.settings.prompt or "", after=new.settings.prompt or "not set"
        )
    for each in _changed(old.settings, new.settings):
        yield _in_a_rule(each)


def _in_a_rule(change: Difference) -> Difference:
    """Return a difference with the name that its setting has in a rule."""
    what = _NAMES_IN_A_RULE.get(change.what, change.what)
    return Difference(what=what, before=change.before, after=change.after)


def _changed(old: Settings, new: Settings) -> Iterator[Difference]:
    news = dict(written_fields(new))
    for name, was in written_fields(old):
        if name not in _DERIVED:
            yield from _difference(name, was, news[name])
    for name in dict.fromkeys((*old.blocks, *new.blocks)):
        yield from _difference(name, old.blocks.get(name), new.blocks.get(name))


def _difference(what: str, one: Any, other: Any, *, whole: bool = False) -> Iterator[Difference]:
    """Yield what differs, key by key in blocks that are there before and after."""
    if one == other:
        return
    if isinstance(one, BaseModel) and type(one) is type(other) and not whole:
        others = dict(written_fields(other))
        for key, value in written_fields(one):
            yield from _difference(f"{what}.{key}", value, others[key])
        if (one.model_extra or {}) != (other.model_extra or {}):
            yield Difference(what=what, before="", after="changed")
        return
    before, after = _text(one), _text(other)
    if {before, after} == {"not set", "{}"}:  # defaults, which hold without the block as well
        return
    if before == after:  # secrets, or texts that are cut
        before, after = "", "changed"
    yield Difference(what=what, before=before, after=after)


def _text(value: object) -> str:
    text = "not set" if value is None else written(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
