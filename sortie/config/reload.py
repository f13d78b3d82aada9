"""Which changes of the settings a running daemon cannot follow, and how to leave them out."""

from __future__ import annotations

from sortie.config.findings import TRACKER_KEYS
from sortie.config.settings import Settings
from sortie.config.values import Frozen

_TRACKER = ("kind", *TRACKER_KEYS)
_TOP_LEVEL = ("db_path", "isolation")
_WORKSPACE = ("root",)
_WEBHOOKS = ("port",)
_SECTIONS = ("repository", "forge", "server", "logging", "store", "traces")
_OF_RULES = ("repository", "forge")


def needs_restart(old: Settings, new: Settings) -> tuple[str, ...]:
    """Return the dotted keys whose new values take effect at the next start only."""
    changed = [
        f"tracker.{name}"
        for name in _TRACKER
        if getattr(old.tracker, name) != getattr(new.tracker, name)
    ]
    if old.tracker.kind == new.tracker.kind:
        block, other = old.block(old.tracker_block), new.block(new.tracker_block)
        changed += [
            f"{old.tracker_block}.{info.alias or name}"
            for name, info in type(block).model_fields.items()
            if getattr(block, name) != getattr(other, name)
        ]
    changed += [
        f"workspace.{name}"
        for name in _WORKSPACE
        if getattr(old.workspace, name) != getattr(new.workspace, name)
    ]
    changed += [
        f"webhooks.{name}"
        for name in _WEBHOOKS
        if getattr(old.webhooks, name) != getattr(new.webhooks, name)
    ]
    for section in _SECTIONS:
        before, after = getattr(old, section), getattr(new, section)
        if before is None or after is None:
            changed += [section] if before is not after else []
            continue
        changed += [
            f"{section}.{info.alias or name}"
            for name, info in type(before).model_fields.items()
            if getattr(before, name) != getattr(after, name)
        ]
    changed += [name for name in _TOP_LEVEL if getattr(old, name) != getattr(new, name)]
    former = {rule.name: rule.settings for rule in old.rules}
    changed += [
        f"rules.{rule.name}.{section}"
        for rule in new.rules
        for section in _OF_RULES
        if rule.name in former
        and getattr(former[rule.name], section) != getattr(rule.settings, section)
    ]
    return tuple(changed)


def keep_restart_only(old: Settings, new: Settings) -> Settings:
    """Return the new settings, but for what needs a restart: that stays as it was.

    A new rule keeps its own repository, which may not be open yet.
    """
    former = {rule.name: rule.settings for rule in old.rules}
    hidden = {
        "secret_variables": tuple(sorted({*old.secret_variables, *new.secret_variables})),
        "secret_parts": tuple(dict.fromkeys((*old.secret_parts, *new.secret_parts))),
    }
    rules = [
        rule.model_copy(
            update={"settings": _kept(old, former.get(rule.name, rule.settings), rule.settings)}
        )
        for rule in new.rules
    ]
    kept = _kept(old, old, new)
    rules = [
        rule.model_copy(update={"settings": rule.settings.model_copy(update=hidden)})
        for rule in rules
    ]
    return kept.model_copy(update={**hidden, "rules": tuple(rules)})


def _kept(old: Settings, same: Settings, new: Settings) -> Settings:
    """Return settings with what stays of the old ones; ``same`` are the old ones of its rule."""
    tracker = {name: getattr(old.tracker, name) for name in _TRACKER}
    home = {name: getattr(old.workspace, name) for name in _WORKSPACE}
    webhooks = {name: getattr(old.webhooks, name) for name in _WEBHOOKS}
    blocks = {**new.blocks, old.tracker_block: old.block(old.tracker_block)}
    return new.model_copy(
        update={
            "tracker": new.tracker.model_copy(update=tracker),
            "workspace": new.workspace.model_copy(update=home),
            "webhooks": new.webhooks.model_copy(update=webhooks),
            **{section: getattr(old, section) for section in _SECTIONS},
            **{section: getattr(same, section) for section in _OF_RULES},
            **{name: getattr(old, name) for name in _TOP_LEVEL},
            "remote_root": new.remote_root if _in_pods(old, new) else old.remote_root,
            "blocks": Frozen(blocks),
            "tracker_block": old.tracker_block,
        }
    )


def _in_pods(old: Settings, new: Settings) -> bool:
    """Tell whether runs have or had pods, whose root is none of a machine."""
    return old.worker.kubernetes is not None or new.worker.kubernetes is not None
