"""The HTTP surface: health, metrics, state, commands, from what the composition root hands in."""

from sortie.web.access import Access
from sortie.web.app import Sources, create_app
from sortie.web.controls import CommandAnswer, Controls, ExplanationView, GateView
from sortie.web.health import Health
from sortie.web.listener import Endpoint, Listener, ListenError, listen
from sortie.web.server import serve
from sortie.web.state import (
    CandidateView,
    Counts,
    FailureView,
    HeldView,
    HostView,
    RunningView,
    SlotsView,
    StateView,
    TotalsView,
    TrackerView,
    UnnamedStateView,
    WaitingView,
    WorkflowView,
    to_json,
)

__all__ = [
    "Access",
    "CommandAnswer",
    "Controls",
    "Counts",
    "Endpoint",
    "ExplanationView",
    "FailureView",
    "GateView",
    "Health",
    "HeldView",
    "HostView",
    "CandidateView",
    "ListenError",
    "Listener",
    "RunningView",
    "SlotsView",
    "Sources",
    "StateView",
    "TotalsView",
    "TrackerView",
    "UnnamedStateView",
    "WaitingView",
    "WorkflowView",
    "create_app",
    "listen",
    "serve",
    "to_json",
]
