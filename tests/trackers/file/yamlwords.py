"""What PyYAML says of a mistake: libyaml's words where it was built with that, else its own."""

from __future__ import annotations

import yaml

_IS_LIBYAML = hasattr(yaml, "CLoader")

NOT_HERE = f"mapping values are not allowed {'in this context' if _IS_LIBYAML else 'here'}"
NO_VALUE = (
    "did not find expected node content"
    if _IS_LIBYAML
    else "expected the node content, but found '<stream end>'"
)
