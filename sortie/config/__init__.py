"""Settings: the front matter of a WORKFLOW.md, decoded whole into frozen values; pure."""

from sortie.config.decode import RATES_KEY, SECTIONS, Decoded, decode
from sortie.config.reload import keep_restart_only, needs_restart
from sortie.config.report import Finding
from sortie.config.schemas import (
    AgentSchema,
    BlockSchema,
    DecodeContext,
    Override,
    Schemas,
    TrackerSchema,
)
from sortie.config.settings import (
    AgentSettings,
    Block,
    CommentSettings,
    HookSettings,
    Isolation,
    LoggingSettings,
    PollingSettings,
    ServerSettings,
    Settings,
    TrackerSettings,
    WorkerSettings,
    WorkspaceSettings,
)
from sortie.config.values import Frozen, PathText, Secret

__all__ = [
    "RATES_KEY",
    "SECTIONS",
    "AgentSchema",
    "AgentSettings",
    "Block",
    "BlockSchema",
    "CommentSettings",
    "DecodeContext",
    "Decoded",
    "Finding",
    "Frozen",
    "HookSettings",
    "Isolation",
    "LoggingSettings",
    "Override",
    "PathText",
    "PollingSettings",
    "Schemas",
    "Secret",
    "ServerSettings",
    "Settings",
    "TrackerSchema",
    "TrackerSettings",
    "WorkerSettings",
    "WorkspaceSettings",
    "decode",
    "keep_restart_only",
    "needs_restart",
]
