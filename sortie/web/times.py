"""Times in views: aware, and written as RFC 3339 in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from sortie.model.times import rfc3339


class _TimeAsText:
    """Has pydantic write a time as RFC 3339; commands that only read views are spared pydantic."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import PlainSerializer

        return PlainSerializer(rfc3339, return_type=str).__get_pydantic_core_schema__(
            source, handler
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, str]:
        return {"type": "string", "format": "date-time"}


Time = Annotated[datetime, _TimeAsText()]
