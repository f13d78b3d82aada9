"""Keep conversations where Kiro keeps them, each engine in its own store.

Rule: what a real Kiro has written is neither changed nor deleted.
"""

from __future__ import annotations

from sortie.kiro.simulator.keeping import Keeping, StoreTrouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sortie.kiro.simulator.exchange import Exchange

ENGINES = ("v1", "v2", "v3")


def record(engine: str, keeping: Keeping, exchange: Exchange) -> str:
    """Keep the exchange and return its conversation's id, "" for engine ``none``.

    Raises StoreTrouble.
    """
    try:
        match engine:
            case "v1":
                from sortie.kiro.simulator.store_v1 import record_v1

                return record_v1(keeping, exchange)
            case "v2":
                from sortie.kiro.simulator.store_v2 import record_v2

                return record_v2(keeping, exchange)
            case "v3":
                from sortie.kiro.simulator.store_v3 import record_v3

                return record_v3(keeping, exchange)
            case _:
                return ""
    except StoreTrouble as error:
        raise StoreTrouble(f"the conversation could not be kept: {error}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreTrouble(f"the conversation could not be kept: {error}") from error
