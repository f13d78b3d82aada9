"""The settings of a WORKFLOW.md, one frozen model for each block; times are seconds.

A field's alias, where it has one, is its key in WORKFLOW.md: there times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    PlainSerializer,
    SecretStr,
)

from sortie.config.agent import AgentSettings as AgentSettings
from sortie.config.block import Block
from sortie.config.journal import JournalSettings
from sortie.config.notifications import NotificationTarget
from sortie.config.questions import QuestionsSettings
from sortie.config.reactions import ReactionsSettings
from sortie.config.references import Lookup
from sortie.config.repository import ForgeSettings, RepositorySettings, VerifySettings
from sortie.config.rules import Conditions, StageSettings
from sortie.config.sandbox import SandboxSettings
from sortie.config.self_review import SelfReviewSettings
from sortie.config.share import ShareSettings
from sortie.config.store import StoreSettings
from sortie.config.token_rates import TokenRate
from sortie.config.tools import Tools
from sortie.config.traces import TracesSettings
from sortie.config.trust import TrustSettings
from sortie.config.values import (
    Blocks,
    Frozen,
    Line,
    PathText,
    Script,
    Secret,
    State,
    TimeZone,
    VariableName,
    amount,
    choice,
    milliseconds,
    whole,
)
from sortie.config.webhooks import WebhooksSettings
from sortie.config.worker import WorkerSettings
from sortie.model import state_key
from sortie.model.tools import ToolName

_freeze_rates: Callable[[Mapping[str, TokenRate]], Mapping[str, TokenRate]] = Frozen

Rates = Annotated[
    Mapping[str, TokenRate],
    AfterValidator(_freeze_rates),
    PlainSerializer(dict, return_type=dict[str, TokenRate]),
]
"""Rates by the name of a model; it cannot be changed."""


class Isolation(StrEnum):
    """Whether the programs of a run start in a PID namespace of their own, which ends them all."""

    AUTO = "auto"
    """Where one can be had."""
    PID_NAMESPACE = "pid-namespace"
    """Always; where none can be had, nothing is started."""
    NONE = "none"
    """Never: for agents that need sudo, which fails in the namespace of an ordinary user."""


class CommentSettings(Block):
    """At which moments Sortie comments on an issue."""

    on_dispatch: bool = False
    on_completion: bool = False
    on_failure: bool = False


class TrackerSettings(Block):
    """Which issues there are and which states mean what; states are compared by ``state_key``."""

    kind: Line
    endpoint: Annotated[Line | None, Lookup.WHOLE] = None
    api_key: Annotated[Secret | None, Lookup.ANYWHERE] = None
    project: Annotated[Line | None, Lookup.WHOLE] = None
    query_filter: Script | None = None
    active_states: tuple[State, ...] = ()
    terminal_states: tuple[State, ...] = ()
    label_states: tuple[State, ...] = ()
    required_labels: tuple[Line, ...] = ()
    in_progress_state: State | None = None
    handoff_state: State | None = None
    comments: CommentSettings = CommentSettings()


class PollingSettings(Block):
    """How often the tracker is asked."""

    interval: Annotated[float, milliseconds(1)] = Field(30.0, alias="interval_ms")


DaysKept = Annotated[int, whole(0, 36_500)]


class WorkspaceSettings(Block):
    """Where workspaces are, and for how long they keep work that is nowhere else."""

    root: PathText
    keep_unpushed_days: DaysKept = 14
    keep_rescued_days: DaysKept = 30
    max_bytes: Annotated[int, whole(0)] = 0
    max_bytes_each: Annotated[int, whole(0)] = 0


class HookSettings(Block):
    """Shell scripts that run in a workspace at points of its life."""

    after_create: Script | None = None
    before_run: Script | None = None
    after_run: Script | None = None
    before_remove: Script | None = None
    timeout: Annotated[float, milliseconds(1)] = Field(60.0, alias="timeout_ms")
    run_on: Annotated[str, choice("workspace", "orchestrator")] = "workspace"
    pass_env: tuple[VariableName, ...] = ()


class ServerSettings(Block):
    """Where the daemon answers HTTP; port 0 is no server, no token is one made at start.

    ``public_url`` is where people reach the dashboard, which links in notifications lead to."""

    host: Line = "127.0.0.1"
    port: Annotated[int, whole(0, 65535)] = 7678
    auth_token: Annotated[Secret | None, Lookup.ONLY] = None
    public_url: Annotated[Line | None, Lookup.WHOLE] = None

    @property
    def port_given(self) -> bool:
        """Tell whether someone asked for this port."""
        return "port" in self.model_fields_set


class LoggingSettings(Block):
    """How much is logged, and in which form."""

    level: Annotated[str, choice("debug", "info", "warning", "error")] = "info"
    format: Annotated[Literal["text", "json"], choice("text", "json")] = "text"


class HistorySettings(Block):
    """How long recorded runs and their transcripts are kept, 0 days for ever, and how large all
    transcripts may be together, 0 for none."""

    keep_days: Annotated[int, whole(0, 36_500)] = 30
    max_bytes: Annotated[int, whole(0)] = 1 << 30


class BudgetSettings(Block):
    """How much may be used in a day, 0 for no limit, and in which zone it begins at midnight."""

    daily_credits: Annotated[float, amount()] = 0.0
    daily_cost_usd: Annotated[float, amount()] = 0.0
    timezone: TimeZone = "UTC"


class Settings(Block):
    """All that a WORKFLOW.md and its overrides say, but for the prompt.

    ``db_path`` and ``workspace.root`` are absolute. ``tracker_block`` names
    the block of the chosen tracker. ``secret_variables`` are the environment variables that
    hold secrets of tracker and server; agents and hooks must not inherit them. ``secret_parts``
    are the texts of those from which a longer secret was put together. ``remote_root`` is
    ``workspace.root`` on SSH hosts, where ``~`` is the home directory of the user that logs in.

    ``rules`` are in the order of the file. The settings of a rule have none; they have its name in
    ``rule``, in ``prompt`` which prompt it wants, "" for that of the top level, and in
    ``stage_result`` the file with what a run leaves for the next stage.
    """

    tracker: TrackerSettings
    trust: TrustSettings = TrustSettings()
    polling: PollingSettings = PollingSettings()
    workspace: WorkspaceSettings
    repository: RepositorySettings = RepositorySettings()
    verify: VerifySettings = VerifySettings()
    self_review: SelfReviewSettings | None = None
    questions: QuestionsSettings | None = None
    forge: ForgeSettings = ForgeSettings()
    reactions: ReactionsSettings = ReactionsSettings()
    hooks: HookSettings = HookSettings()
    sandbox: SandboxSettings = SandboxSettings()
    agent: AgentSettings = AgentSettings()
    share: ShareSettings = ShareSettings()
    worker: WorkerSettings = WorkerSettings()
    server: ServerSettings = ServerSettings()
    webhooks: WebhooksSettings = WebhooksSettings()
    logging: LoggingSettings = LoggingSettings()
    history: HistorySettings = HistorySettings()
    journal: JournalSettings = JournalSettings()
    traces: TracesSettings | None = None
    budget: BudgetSettings = BudgetSettings()
    token_rates: Rates = Frozen()
    tools: Tools = ()
    notifications: tuple[NotificationTarget, ...] = ()
    store: StoreSettings = StoreSettings()
    db_path: PathText
    isolation: Isolation = Isolation.AUTO
    blocks: Blocks = Frozen()
    tracker_block: str = ""
    remote_root: str = ""
    secret_variables: tuple[str, ...] = ()
    secret_parts: tuple[SecretStr, ...] = ()
    rules: tuple[Rule, ...] = ()
    rule: str = ""
    prompt: str = ""
    stage_result: str = ""

    @property
    def database(self) -> str | StoreSettings:
        """Where the rows are: a server, or a file by its path."""
        return self.db_path if self.store.url is None else self.store

    def of_rule(self, name: str) -> Settings:
        """Return the settings of a rule, these where there is none of this name."""
        return next((rule.settings for rule in self.rules if rule.name == name), self)

    def every(self) -> tuple[Settings, ...]:
        """Return these settings, and those of each rule."""
        return (self, *(rule.settings for rule in self.rules))

    @property
    def active_states(self) -> tuple[str, ...]:
        """The states in which any rule has issues worked on, as they are spelled first."""
        every = [name for one in self.every() for name in one.tracker.active_states]
        spelled = {state_key(name): name for name in reversed(every)}
        return tuple(reversed(spelled.values()))

    @property
    def usable_tools(self) -> tuple[ToolName, ...]:
        """The tools that agents have: ``ask`` only where people are asked questions."""
        asks = self.questions is not None
        return tuple(tool for tool in self.tools if asks or tool is not ToolName.ASK)

    def block(self, name: str) -> BaseModel:
        """Return the block of an adapter, its defaults where WORKFLOW.md has none.

        Raises KeyError for a name that belongs to no adapter, or to one that is not chosen, is
        absent and has required keys.
        """
        return self.blocks[name]


class Rule(Block):
    """For which issues a rule is, and the settings that it decides for them.

    No more than ``max_concurrent_agents`` of its runs work at once, up to ``burst_to`` while nobody
    else wants the slots; ``guaranteed`` slots are given to no other rule.
    """

    name: str
    when: Conditions
    settings: Settings
    max_concurrent_agents: int | None = None
    guaranteed: int = 0
    burst_to: int | None = None
    stage: StageSettings = StageSettings()


Settings.model_rebuild()
