"""What no file says is asked, and asked again where the answer makes no sense."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from app.cli.init import questions
from app.cli.init.columns import Column
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Typist:
    """A terminal whose user types what is written down here."""

    typed: list[str]
    shown: list[str] = field(default_factory=list)

    def ask(self, question: str, default: str) -> str:
        """Type the next answer; nothing takes the default."""
        self.shown.append(question)
        return self.typed.pop(0) or default

    def tell(self, line: str) -> None:
        """Read a line."""
        self.shown.append(line)


def test_columns_are_asked_that_are_not_described() -> None:
    """A range makes a number, names make categories, and nothing leaves a column out."""
    columns = [
        Column(name="known", kind="numeric", bounds=(0, 1)),
        *(Column(name=name) for name in ("age", "region", "notes", "seen", "smoker")),
    ]
    terminal = Typist(["18..90", "north | south", "", "1970-01-02..1970-01-11", "true|false"])
    assert questions.asked_columns(terminal, columns) == [
        columns[0],
        Column(name="age", kind="numeric", bounds=(18, 90)),
        Column(name="region", kind="categorical", categories=("north", "south")),
        Column(name="notes", left_out=questions.NOT_WANTED),
        Column(name="seen", kind="date", bounds=(1, 10)),
        Column(name="smoker", kind="boolean", categories=("false", "true")),
    ]
    assert terminal.shown[:2] == [questions.PUBLIC_ONLY, questions.HOW_TO_DESCRIBE]


@pytest.mark.parametrize(
    "text", ["90..18", "1..1", "x", "a|a", "a|", "-1e308..1e308", "2020-02-01..2020-01-01"]
)
def test_an_answer_that_makes_no_sense_is_asked_again(text: str) -> None:
    """The reason is shown, and the question is put once more."""
    terminal = Typist([text, "0..1"])
    (column,) = questions.asked_columns(terminal, [Column(name="age")])
    assert column.bounds == (0, 1)
    assert terminal.shown.count("age") == 2


def test_a_question_is_put_ten_times_at_most(tmp_path: Path) -> None:
    """Who answers nonsense ten times is refused."""
    with pytest.raises(ConfigurationError, match="made no sense"):
        questions.asked_rows(Typist(["many"] * questions.ATTEMPTS_MAX))
    with pytest.raises(ConfigurationError, match="made no sense"):
        questions.asked_records(Typist(["absent"] * 10), tmp_path / "records.csv")


def test_the_other_facts_are_asked(tmp_path: Path) -> None:
    """Which way, which file, which names, which label with which classes, and how many rows."""
    records = tmp_path / "records.csv"
    records.touch()
    terminal = Typist(["both", "online", "", "a, b", "c", "b", "no", "no,yes", "", "3000"])
    assert questions.asked_path(terminal)
    assert questions.asked_records(terminal, records) == records
    assert questions.asked_names(terminal) == ("a", "b")
    assert questions.asked_label(terminal, ["a", "b"]) == "b"
    assert questions.asked_classes(terminal, "b") == ("no", "yes")
    assert questions.asked_rows(terminal) is None
    assert questions.asked_rows(terminal) == 3000
