"""The conformance kit for agents: what every adapter promises, tried with its program.

``python -m sortie.testing.agent --kind KIND --command COMMAND`` runs it, and so can tests::

    @pytest.mark.parametrize("name", CHECKS)
    async def test_my_adapter(name):
        subject = Conformance(adapter=ADAPTER, scenarios=read_scenarios(HERE, tmp_path), env=...)
        verdict = await subject.verdict(CHECKS[name], this_machine())
        assert verdict.status is not Status.FAILED, verdict.reason
"""

from sortie.testing.agent.check import CHECKS
from sortie.testing.agent.place import AgentHost, open_host, this_machine
from sortie.testing.agent.run import Conformance
from sortie.testing.agent.scenarios import SCENARIOS, Scenarios, plain_scenarios, read_scenarios
from sortie.testing.agent.subject import Subject
from sortie.testing.checks import CheckVerdict, ConformanceCheck, Status

__all__ = [
    "CHECKS",
    "SCENARIOS",
    "ConformanceCheck",
    "Conformance",
    "AgentHost",
    "Scenarios",
    "Status",
    "Subject",
    "CheckVerdict",
    "open_host",
    "plain_scenarios",
    "read_scenarios",
    "this_machine",
]
