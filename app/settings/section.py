"""What every table of the configuration has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """What every table of the configuration has in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
