"""The public numbers of an example can be computed again."""

from __future__ import annotations

import importlib.util
import tomllib
from typing import TYPE_CHECKING

import pytest

from app.data.sources.sources import read_rows
from app.settings.settings import load_settings
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

ADULT_BOUNDS = (
    "age=17:90",
    "education_num=1:16",
    "capital_gain=0:99999",
    "capital_loss=0:5000",
    "hours_per_week=1:99",
)


@pytest.fixture(name="public_cuts")
def load_public_cuts() -> ModuleType:
    """Return the example's script as a module."""
    path = ROOT / "examples" / "public_cuts.py"
    spec = importlib.util.spec_from_file_location("public_cuts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("values", "parts", "cuts"),
    [
        ([1, 2, 3, 4], 2, [3]),
        ([0] * 6 + [10, 20, 30, 40, 50], 5, [1, 40]),
        ([0.0] * 6 + [0.5, 2.5, 3.5], 5, [0.5, 3.5]),
        ([0] * 6 + [3, 9, 9], 5, [1]),
        ([7, 7, 7], 5, []),
    ],
)
def test_cuts_follow_the_public_rows(
    public_cuts: ModuleType, values: list[float], parts: int, cuts: list[float]
) -> None:
    """Cuts part the rows equally, or set a common value apart and part the rest once."""
    assert public_cuts.cuts([float(value) for value in values], parts) == cuts


def test_the_label_and_skipped_columns_are_left_out(
    public_cuts: ModuleType, tmp_path: Path
) -> None:
    """What is printed is TOML, has one feature a column, and shares of all rows."""
    path = tmp_path / "public.csv"
    path.write_text('id,age,"a b",y\n1,30,x,no\n2,40,?,yes\n3,50,z,no\n4,60,x,no\n')
    text = public_cuts.main(
        [str(path), "--label", "y", "--skip", "id", "--missing", "?", "--parts", "2"]
    )
    assert tomllib.loads(text) == {
        "data": {
            "features": [
                {
                    "name": "age",
                    "kind": "numeric",
                    "bounds": [30, 60],
                    "thresholds": [50],
                    "threshold_shares": [0.5],
                },
                {
                    "name": "a b",
                    "kind": "categorical",
                    "categories": ["x", "z"],
                    "category_shares": [0.5, 0.25],
                },
            ]
        },
        "hypotheses": {"tests": {"a b": ["x"]}},
    }


@pytest.mark.data
def test_the_numbers_of_adult_are_those_of_its_public_rows(
    public_cuts: ModuleType, data_folder: Path
) -> None:
    """Features and lists of examples/adult.toml are what 1,000 rows of test.csv give."""
    text = public_cuts.main(
        [
            str(data_folder / "adult" / "test.csv"),
            *("--label", "income", "--skip", "fnlwgt", "education", "--missing", "?"),
            *("--bounds", *ADULT_BOUNDS),
        ]
    )
    computed = tomllib.loads(text)
    written = tomllib.loads((ROOT / "examples" / "adult.toml").read_text(encoding="utf-8"))
    assert written["data"]["features"] == computed["data"]["features"]
    assert written["hypotheses"]["tests"] == computed["hypotheses"]["tests"]


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "skin"])
def test_the_rows_of_an_example_fit_its_schema(data_folder: Path, name: str) -> None:
    """Every row of the real data set is read, as many as the configuration says."""
    settings = load_settings(
        ROOT / "examples" / f"{name}.toml",
        {"CONCLAVE_DATA__SOURCE": str(data_folder / name / "train.csv")},
    )
    rows = read_rows(
        settings.source, settings.data.public_schema(), rows_expected=settings.data.rows
    )
    assert rows.count == settings.data.rows
