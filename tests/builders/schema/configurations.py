"""A configuration that is right, to be spoiled one line at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = """\
[release]
name = "adult-income"

[data]
source = "train.csv"
rows = 32561
label = "income"
classes = ["<=50K", ">50K"]
missing = ["?"]

[[data.features]]
name = "age"
kind = "numeric"
bounds = [17, 90]
thresholds = [25, 35, 50]
threshold_shares = [0.80, 0.58, 0.20]

[[data.features]]
name = "workclass"
kind = "categorical"
categories = ["Private", "State-gov"]
category_shares = [0.70, 0.04]

[hypotheses]
class = "trees"
"""


def write(folder: Path, text: str = RIGHT) -> Path:
    """Write a configuration and return its path."""
    path = folder / "conclave.toml"
    path.write_text(text, encoding="utf-8")
    return path


def spoil(old: str, new: str) -> str:
    """Return the right configuration with one piece replaced."""
    assert RIGHT.count(old) == 1, old
    return RIGHT.replace(old, new)


def line_of(path: Path, environ: dict[str, str] | None = None) -> str:
    """Return the line that a configuration is refused with."""
    with pytest.raises(ConfigurationError) as refused:
        load_settings(path, environ or {})
    return f"conclave: {refused.value}"
