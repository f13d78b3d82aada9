"""What was skipped in a run of the tests, and what it would take to try it, in three lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

FULL = "slow: run with --full"

_NEEDED = {
    r"^root (may|can)\b|\bto root's programs\b": "an ordinary user",
    r"\bsshd\b": "apt: openssh-server",
    r"\bssh-keygen\b|\bthere is no ssh\b": "apt: openssh-client",
    r"\bchromium\b": "apt: chromium",
    r"\bpromtool\b|\bPrometheus\b": "apt: prometheus",
    r"\bPostgreSQL\b": "apt: postgresql",
    r"\bsystemd-analyze\b": "apt: systemd",
    r"\bprogram ip\b": "apt: iproute2",
    r"\bpodman\b": "apt: podman runc",
    r"\bno docker-registry\b": "apt: docker-registry",
    r"\bno docker": "apt: docker.io",
    r"\bno C compiler\b": "apt: gcc libc6-dev",
    r"^needs (?P<tool>jq|sqlite3)$": "apt: {tool}",
    r"\b(?P<tool>bubblewrap|curl|git) is not\b": "apt: {tool}",
    r"\bflock\b|\bprlimit\b|\bsetpriv\b": "apt: util-linux",
    r"^no (?P<shell>ash|busybox|csh|dash|fish|ksh|mksh|tcsh|yash|zsh)$": "apt: {shell}",
    r"\bkubectl\b": "apt: kubernetes-client",
    r"^there is no etcd$": "apt: etcd-server",
    r"^no API server of Kubernetes was built\b": ".ci/kubernetes",
    r"^no go$": "apt: golang-go",
    r"\bnpm\b": "apt: npm",
    r"\bnode\b": "apt: nodejs",
    r"\bkubernetes-validate\b|\bmypy is\b|\bpyright is\b": "pip: '.[dev]'",
    r"\bplaywright is\b": "pip: '.[test]'",
    r"\bkiro-cli\b": "kiro-cli",
    r"\bKIRO_API_KEY\b": "KIRO_API_KEY",
    r"\bonly root\b|\bneeds root\b|\bcan be mounted\b|\bmade immutable\b|\bchattr\b"
    r"|\bnamespace\b|\bcgroup\b|\bcontrol group\b": "root",
}
"""What is needed, by an expression that the reason of a skipped test matches."""


def lines_about(reasons: Iterable[str]) -> list[str]:
    """Return three lines at most about the reasons for which tests were skipped."""
    slow, needed, rest = 0, Counter[str](), 0
    for reason in reasons:
        need = _need_of(reason)
        if reason == FULL:
            slow += 1
        elif need is None:
            rest += 1
        else:
            needed[need] += 1
    lines = []
    if slow:
        lines.append(f"skipped {slow}: slow, run with --full")
    if needed:
        lines.append(f"skipped {needed.total()}, which would need {_told(needed)}")
    if rest:
        lines.append(f"skipped {rest}: they do not apply to this system or adapter; -rs tells all")
    return lines


def _need_of(reason: str) -> str | None:
    for pattern, need in _NEEDED.items():
        if found := re.search(pattern, reason):
            return need.format(**found.groupdict())
    return None


def _told(needed: Counter[str]) -> str:
    """Name everything once, with how many tests need it: packages by who installs them."""
    by_installer: dict[str, list[str]] = {"apt": [], "pip": [], "": []}
    for need, count in sorted(needed.items()):
        installer, _, name = need.rpartition(": ")
        by_installer[installer].append(f"{name} ({count})")
    parts = [
        f"{who} install {' '.join(names)}" for who, names in by_installer.items() if who and names
    ]
    return "; ".join([*parts, *by_installer[""]])
