"""``conclave plan --config``: print three lines, every figure, or recommended settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from app.cli import numeric_options as numbers
from app.cli.plan.plot import check_plot, draw_plot
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from app.cli.opening_progress import OpeningProgress
    from app.planning.mechanisms.planning_registration import Document
    from app.planning.plan import Plan
    from app.planning.trial.search_for_wanted import Offer, Wanted
    from app.settings.settings import Settings

    Given = Mapping[str, str]

PLANNING: Final = "working out the plan"
PLOTTING: Final = "working out the plot"
POPULATIONS: Final = "--populations"
POPULATIONS_MAX: Final = 1000
TOML: Final = "--toml"
VERBOSE: Final = "--verbose"
WANT_ANSWERS: Final = "--want-answers"
WANT_ACCURACY: Final = "--want-accuracy"
GENERATIONS: Final = "--generations"
DEMAND: Final = "--demand"
OPTIONS: Final = (
    "--rows",
    "--plot",
    "--public",
    POPULATIONS,
    TOML,
    VERBOSE,
    WANT_ANSWERS,
    WANT_ACCURACY,
    GENERATIONS,
    DEMAND,
)


def plan_config(config: Path, given: Given, *, as_json: bool) -> bool:
    """Print the plan of a configuration; return whether the release can work.

    If the options state a wanted number of answers or a wanted accuracy, the result is whether some
    settings reach it.

    Args:
        config: the path of the configuration file.
        given: the value of each option that was given on the command line.
        as_json: whether to print a JSON document instead of sentences.

    Raises:
        ConfigurationError: bad usage or configuration.

    """
    from app.settings.settings import load_settings

    rows = numbers.count("--rows", given["--rows"]) if "--rows" in given else None
    wanted, populations = _wanted(given), _populations(given)
    if as_json and TOML in given:
        raise ConfigurationError(TOML, "does not go with --json")
    asked = _Asked(
        settings=load_settings(config, os.environ),
        rows=rows,
        public=Path(given["--public"]) if "--public" in given else None,
        populations=populations,
    )
    if GENERATIONS in given or DEMAND in given:
        return _plan_generations(asked, given, as_json=as_json)
    plot = Path(given["--plot"]) if "--plot" in given else None
    if plot is not None:
        check_plot(plot)
    in_brief = not as_json and TOML not in given and VERBOSE not in given
    if in_brief and wanted is None:
        _print_first_lines(asked)
    from app.cli.opening_progress import OpeningProgress

    with OpeningProgress(transient=True) as progress:
        progress(PLANNING, 0, 1)
        needs_prediction = wanted is None or as_json or VERBOSE in given
        planned = _planned(asked, with_prediction=needs_prediction)
        offer = None if wanted is None else _search(asked, planned, wanted)
        document = {} if in_brief or TOML in given else _document(asked, planned, offer)
        progress(PLANNING, 1, 1)
        if plot is not None:
            document |= _plotted(asked, planned, plot, progress)
    _print(asked, planned, offer, document, given=given, as_json=as_json)
    return planned.feasible if offer is None else offer.best is not None


def _plan_generations(asked: _Asked, given: Given, *, as_json: bool) -> bool:
    """Print what generations sustain together; return whether a quorum meets the demand.

    Raises:
        ConfigurationError: nothing can be tried, or the options do not go together.

    """
    from app.cli.plan.table import print_json
    from app.planning.output.sustained_sentences import sustained_document, sustained_lines
    from app.planning.trial.sustained_answers import sustained
    from app.planning.trial.trial_from_settings import planned_trial

    if GENERATIONS not in given:
        raise ConfigurationError(DEMAND, "goes with --generations")
    if asked.settings.generations is None:
        raise ConfigurationError("generations", "needs a section [generations], which may be empty")
    planned = _planned(asked, with_prediction=False)
    demand = planned.request.query_count
    if DEMAND in given:
        demand = numbers.count(DEMAND, given[DEMAND])
    points, count = _points(asked), asked.populations
    trial = planned_trial(asked.settings, planned, points=points, hypothesis_count=count)
    if isinstance(trial, str):
        raise ConfigurationError(GENERATIONS, f"cannot tell u(G): {trial}")
    found = sustained(planned, trial, demand=demand)
    if found is None:
        raise ConfigurationError(GENERATIONS, "cannot tell u(G): its learners take too long")
    if as_json:
        print_json(sustained_document(found, planned.request))
    else:
        typer.echo("\n".join(sustained_lines(found, planned.request)))
    return found.quorum is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a plan is made of, besides how it is printed."""

    settings: Settings
    rows: int | None
    public: Path | None
    populations: int | None


def _print_first_lines(asked: _Asked) -> None:
    """Print what follows from public numbers at once."""
    from app.planning.from_settings import plan_request
    from app.planning.output.short_plan import accuracy_line, answers_line

    settings = asked.settings
    request = plan_request(settings, asked.rows)
    shares = None if asked.public is None else _label_shares(settings, asked.public)
    typer.echo(answers_line(request))
    typer.echo(accuracy_line(request, classes=settings.data.classes, label_shares=shares))


def _label_shares(settings: Settings, public: Path) -> dict[str, float] | None:
    """Return the share of each label in the public sample; None where it has no labels."""
    from app.data.public_points import read_label_shares
    from app.release.drawing import read_points

    read_points(settings, public)
    return read_label_shares(public, settings.data.label, settings.data.dialect)


def _planned(asked: _Asked, *, with_prediction: bool) -> Plan:
    from app.planning.from_settings import plan_settings
    from app.planning.trial import trial_from_settings

    planned = plan_settings(asked.settings, asked.rows)
    if not with_prediction:
        return planned
    return trial_from_settings.with_prediction(
        asked.settings, planned, points=_points(asked), hypothesis_count=asked.populations
    )


def _points(asked: _Asked) -> NDArray[np.float64] | None:
    from app.release.drawing import read_points

    return None if asked.public is None else read_points(asked.settings, asked.public)


def _search(asked: _Asked, planned: Plan, wanted: Wanted) -> Offer:
    """Look for the cheapest release that gives what is wanted."""
    from app.planning.trial.search_for_wanted import search
    from app.planning.trial.trial_from_settings import planned_trial

    if planned.request.row_count is None:
        raise ConfigurationError("--rows", f"is needed, as data.{planned.request.unit}s is not set")
    trial = None
    if asked.populations != 0:
        trial = planned_trial(
            asked.settings,
            planned,
            points=_points(asked),
            hypothesis_count=asked.populations,
        )
    return search(planned.request, wanted, None if isinstance(trial, str) else trial)


def _document(asked: _Asked, planned: Plan, offer: Offer | None) -> Document:
    from app.planning.output.plan_document import plan_document
    from app.planning.output.wanted_result import wanted_document
    from app.planning.trial.trial_from_settings import planned_answer_time

    answer_time = planned_answer_time(asked.settings, planned)
    document = plan_document(planned) | {
        "answer_time": answer_time and answer_time.document(asked.settings)
    }
    return document if offer is None else document | {"wanted": wanted_document(offer)}


def _plotted(asked: _Asked, planned: Plan, path: Path, progress: OpeningProgress) -> Document:
    """Draw the plot; return its series."""
    from app.planning.curves import panels
    from app.planning.output.plan_document import curves_document

    found = panels(
        planned.request,
        rows_needed=planned.answers.rows_needed,
        progress=lambda done, total: progress(PLOTTING, done, total),
    )
    if not found:
        raise ConfigurationError("--plot", "has nothing to draw: answers have no share")
    draw_plot(path, asked.settings.release.name, planned, found)
    return curves_document(found)


def _print(
    asked: _Asked,
    planned: Plan,
    offer: Offer | None,
    document: Document,
    *,
    given: Given,
    as_json: bool,
) -> None:
    """Print what is left to be printed, in the form that was asked for."""
    from app.cli.plan.table import print_document, print_json
    from app.planning.output.short_plan import change_line
    from app.planning.output.wanted_result import wanted_lines

    if as_json:
        print_json(document)
    elif TOML in given:
        typer.echo(_toml(asked, planned, offer), nl=False)
    else:
        if offer is not None:
            typer.echo("\n".join(wanted_lines(planned, offer)))
        elif VERBOSE not in given:
            typer.echo(change_line(planned))
        if VERBOSE in given:
            print_document(document)


def _toml(asked: _Asked, planned: Plan, offer: Offer | None) -> str:
    from app.planning.output.settings_toml import settings_toml
    from app.planning.output.short_plan import is_better

    if offer is not None:
        best = offer.best
        return settings_toml(
            asked.settings,
            None if best is None else best.request,
            None if best is None else best.choice,
        )
    found = planned.prediction
    best_choice = None if found is None else found.best
    if found is None or best_choice is None or not is_better(best_choice, found.own):
        return settings_toml(asked.settings, None, None)
    return settings_toml(asked.settings, planned.request, best_choice)


def _wanted(given: Given) -> Wanted | None:
    """Return what is wanted; None where nothing is."""
    from app.planning.trial.search_for_wanted import Wanted

    if WANT_ANSWERS not in given and WANT_ACCURACY not in given:
        return None
    answers = given.get(WANT_ANSWERS)
    accuracy = given.get(WANT_ACCURACY)
    return Wanted(
        answers=None if answers is None else numbers.count(WANT_ANSWERS, answers),
        loss=None if accuracy is None else float(1 - numbers.probability(WANT_ACCURACY, accuracy)),
    )


def _populations(given: Given) -> int | None:
    text = given.get(POPULATIONS)
    if text is None:
        return None
    found = 0 if text == "0" else numbers.count(POPULATIONS, text)
    if found > POPULATIONS_MAX:
        raise ConfigurationError(POPULATIONS, f"must be at most {POPULATIONS_MAX}")
    return found
