"""Workspaces: one directory per issue, its hooks and the environment of what runs in it."""

from sortie.workspaces.environment import (
    RunVariables,
    Secrets,
    agent_env,
    helper_env,
    hook_env,
    remote_agent_env,
    remote_hook_env,
)
from sortie.workspaces.git_work import GitWork, git_head, work_since
from sortie.workspaces.hooks import HookOutcome, HookResult, run_hook
from sortie.workspaces.unsaved_work import unsaved_work
from sortie.workspaces.workspace_files import STATUS_FILE
from sortie.workspaces.workspaces import Workspace, Workspaces, workspace_key

__all__ = [
    "STATUS_FILE",
    "GitWork",
    "HookOutcome",
    "HookResult",
    "RunVariables",
    "Secrets",
    "Workspace",
    "Workspaces",
    "agent_env",
    "git_head",
    "helper_env",
    "hook_env",
    "remote_agent_env",
    "remote_hook_env",
    "run_hook",
    "unsaved_work",
    "work_since",
    "workspace_key",
]
