"""All checks of one adapter, one after the other."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from sortie.agents import Agent, AgentAdapter, AgentContext
from sortie.model import RunId, SortieError
from sortie.model.hiding import repr_without
from sortie.model.secrets import redactor
from sortie.testing.agent import checks as _checks  # registers them
from sortie.testing.agent.place import AgentHost, temporary_directory
from sortie.testing.agent.scenarios import Scenarios
from sortie.testing.agent.subject import Program, Subject
from sortie.testing.checks import CHECK_TIME_LIMIT, CheckVerdict, ConformanceCheck, Status
from sortie.transports import COOKIE

assert _checks is not None


class Conformance(Struct, frozen=True, kw_only=True):
    """An adapter that is to be checked; ``env`` is what its sessions have besides the scenarios'.

    ``make`` makes the adapter in another way than its own. ``slack`` is as in Subject.
    """

    adapter: AgentAdapter
    scenarios: Scenarios
    command: Program = None
    env: Mapping[str, str] = field(default_factory=dict)
    patience: float = CHECK_TIME_LIMIT
    slack: float = 10.0
    make: Callable[[AgentContext], Agent] | None = None

    __repr__ = repr_without("env")

    async def verdict(self, check: ConformanceCheck[Subject], place: AgentHost) -> CheckVerdict:
        """Make one check, in a workspace of its own. Raises TransportError, SortieError."""
        transport = place.transport()
        run_id = RunId(str(uuid.uuid4()))
        async with temporary_directory(transport) as workspace:
            subject = Subject(
                adapter=self.adapter,
                command=self.scenarios.command if self.command is None else self.command,
                settings=self.settings(),
                scenarios=self.scenarios,
                transport=transport,
                workspace=workspace,
                run_id=run_id,
                env={**self.env, **self.scenarios.env, COOKIE: run_id},
                slack=self.slack,
                make=self.make,
            )
            verdict = await check.verdict(subject, self.patience)
        return replace(verdict, reason=redactor(self._secrets())(verdict.reason))

    def _secrets(self) -> list[str]:
        known = {**self.env, **self.scenarios.env}
        named = [known.get(name, "").strip() for name in self.adapter.env_names]
        return [*named, *(each.secret for each in self.scenarios.scenarios.values())]

    def settings(self) -> BaseModel:
        """Return the adapter's block as the scenarios give it. Raises SortieError."""
        try:
            return self.adapter.block.model_validate(self.scenarios.settings)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, (self.adapter.block_name, *first["loc"])))
            raise SortieError(f"{place}: {first['msg']}") from error


def failed(verdicts: Collection[CheckVerdict]) -> bool:
    """Tell whether a promise was not kept."""
    return any(verdict.status is Status.FAILED for verdict in verdicts)
