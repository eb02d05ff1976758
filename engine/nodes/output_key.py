"""The setting that gives what a node gives a name in the run's state."""

from __future__ import annotations

from pydantic import BaseModel, Field


class OutputKey(BaseModel):
    """Mixed into the settings of the node types whose output may have a name."""

    output_key: str = Field(
        default="",
        max_length=64,
        pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$",
        title="State name",
        description="Makes the output available as {{state.NAME}} in the whole run. Leave empty for none.",
        json_schema_extra={"group": "more"},
    )
