"""Which commands there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, Sequence[str]] = {
    "run": (
        "sortie.cli.run",
        "sortie run",
        "sortie run --dry-run --format json",
        "sortie run team/WORKFLOW.md --port 8080 --log-format json",
        "sortie run --exit-when-idle && echo all done",
    ),
    "validate": (
        "sortie.cli.validate",
        "sortie validate",
        "sortie validate team/WORKFLOW.md --env-file team/.env",
        "sortie validate --format json | jq '.problems'",
        "git show HEAD:WORKFLOW.md | sortie validate -",
    ),
    "doctor": (
        "sortie.cli.doctor",
        "sortie doctor",
        "sortie doctor team/WORKFLOW.md --env-file team/.env",
        "sortie doctor --host build-1",
        "sortie doctor --format json | jq '.checks[] | select(.outcome == \"failed\")'",
    ),
    "init": (
        "sortie.cli.init",
        "sortie init",
        "sortie init team/WORKFLOW.md",
        "sortie init --agent claude-code --tracker github",
    ),
    "import": (
        "sortie.cli.import_",
        "sortie import old/WORKFLOW.md --output WORKFLOW.md",
        "sortie import old/WORKFLOW.md --from symphony > WORKFLOW.md",
        "sortie import old/WORKFLOW.md --format json | jq '.keys[] | select(.outcome == \"lost\")'",
    ),
    "schema": (
        "sortie.cli.schema",
        "sortie schema > WORKFLOW.schema.json",
    ),
    "demo": (
        "sortie.cli.demo.command",
        "sortie demo --exit-when-idle",
        "sortie demo /tmp/look --port 8080",
        "sortie demo --agent claude-code",
        "sortie demo --agent acp --agent-command 'gemini --acp'",
    ),
    "render": (
        "sortie.cli.render",
        "sortie render DEMO-1",
        "sortie render DEMO-1 team/WORKFLOW.md --turn 2",
        "sortie render DEMO-1 --rule docs",
    ),
    "history": (
        "sortie.cli.history",
        "sortie history --issue DEMO-1",
        "sortie history --rule docs",
        "sortie history --limit 500 --format json | jq 'map(.credits) | add'",
    ),
    "export": (
        "sortie.cli.export",
        "sortie export > runs.jsonl",
        "sortie export --issue DEMO-1 | jq -r .diff",
    ),
    "diff": (
        "sortie.cli.diff",
        "sortie diff DEMO-1",
        "sortie diff DEMO-1 | git apply --stat",
    ),
    "rescue": (
        "sortie.cli.rescue",
        "sortie rescue list",
        "sortie rescue show DEMO-1",
        "sortie rescue restore DEMO-1 --into ../elsewhere",
    ),
    "store": (
        "sortie.cli.store",
        "sortie store copy --to server",
        "sortie store copy --to file --workflow team/WORKFLOW.md",
        "sortie store purge DEMO-1",
    ),
    "logs": (
        "sortie.cli.logs",
        "sortie logs DEMO-1",
        "sortie logs DEMO-1 --follow",
        "sortie logs DEMO-1 --run 3d999c5f-b746-551b-bada-8e7cd0e666ac --format json",
    ),
    "stats": (
        "sortie.cli.stats",
        "sortie stats",
        "sortie stats --by-rule --days 7",
        "sortie stats --days 30 --format json | jq 'map(.cost_usd) | add'",
    ),
    "status": (
        "sortie.cli.status",
        "sortie status",
        "sortie status --watch",
        "sortie status --format json | jq '.held[].issue_identifier'",
    ),
    "explain": (
        "sortie.cli.explain",
        "sortie explain DEMO-1",
        "sortie explain DEMO-1 --at 03:12",
        "sortie explain DEMO-1 --format json | jq '.gates'",
    ),
    "rules": (
        "sortie.cli.rules",
        "sortie rules",
        "sortie rules DEMO-1",
        "sortie rules DEMO-1 --format json | jq -r .rule",
    ),
    "plan": (
        "sortie.cli.plan",
        "sortie plan",
        "sortie plan --against NEW.md",
        "sortie plan --days 7 --against NEW.md --format json",
    ),
    "open": (
        "sortie.cli.open",
        "sortie open",
        "sortie open --print",
        "sortie open --format json | jq -r '.url'",
    ),
    "mcp": (
        "sortie.cli.mcp",
        "sortie mcp",
        "sortie mcp ~/workspaces/DEMO-1",
    ),
    "refresh": (
        "sortie.cli.operator",
        "sortie refresh",
    ),
    "pause": (
        "sortie.cli.operator",
        "sortie pause",
        "sortie pause team/WORKFLOW.md",
    ),
    "resume": (
        "sortie.cli.operator",
        "sortie resume",
    ),
    "stop": (
        "sortie.cli.operator",
        "sortie stop DEMO-1",
        "sortie stop 'group/project#7'",
    ),
    "retry": (
        "sortie.cli.operator",
        "sortie retry DEMO-1",
        "sortie retry DEMO-1 --format json",
    ),
    "answer": (
        "sortie.cli.answer",
        "sortie answer DEMO-1 2",
        "sortie answer DEMO-1 'use the second schema'",
    ),
    "drain": (
        "sortie.cli.drain",
        "sortie drain",
        "sortie drain --wait 3600 && sudo reboot",
        "sortie drain --cancel",
    ),
    "notifications": (
        "sortie.cli.notifications",
        "sortie notifications",
        "sortie notifications --dead --format json",
        "sortie notifications test --target slack",
        "sortie notifications send 7",
        "sortie notifications send --all-dead",
    ),
    "service": (
        "sortie.cli.service.command",
        "sortie service install",
        "sortie service install team/WORKFLOW.md --dry-run",
        "sudo sortie service install /srv/sortie/WORKFLOW.md --system --run-as sortie",
        "sortie service uninstall",
    ),
    "help": (
        "sortie.cli.help",
        "sortie help",
        "sortie help operating | less",
        "sortie help trackers/github",
        "sortie help run",
    ),
    "version": (
        "sortie.cli.version",
        "sortie version",
        "sortie version --format json",
    ),
}
"""The commands by name, in the order of the help: the module of each, and how it is used.

The module is imported when the command is asked for.
"""

COMPLETE_VARIABLE = "_SORTIE_COMPLETE"
"""Is in the environment where a shell asks for completions."""
