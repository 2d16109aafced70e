"""``conclave plan``: what a configuration gives, without reading a private row.

Three forms: a configuration file's release, the papers' own parameters and what their
theorems ask for, and the table of Theorem A.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli import numeric_options as numbers
from app.cli.plan.plot import check_plot, draw_plot
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.planning.mechanisms.planned_row import Document
    from app.planning.plan import Plan
    from app.privacy.paper.row_theorems import Targets
    from app.settings.settings import Settings

EXIT_INFEASIBLE: Final = 1
PLANNING: Final = "working out the plan"
PLOTTING: Final = "working out the plot"
POPULATIONS: Final = "--populations"
POPULATIONS_MAX: Final = 1000
DECISIONS: Final = "--decisions"
CUTOFF: Final = "--cutoff"
FORMS: Final = {
    "--config": (),
    "--paper": ("--n", "--queries", "--vc", "--epsilon", "--delta", "--alpha", "--beta"),
    "--profile": ("--epsilon", "--delta", "--cutoff"),
}
OPTIONAL: Final = {
    "--config": ("--rows", "--plot", "--public", POPULATIONS),
    "--paper": ("--gamma", "--dual-vc", "--hypotheses"),
    "--profile": (DECISIONS,),
}
OPTION_OF_KEY: Final = {
    "privacy.epsilon": "--epsilon",
    "privacy.delta": "--delta",
    "answers.cutoff": "--cutoff",
}

Given = Mapping[str, str]
Text = str | None


def register(application: typer.Typer) -> None:
    """Add the command to the application."""
    application.command("plan")(plan)


def plan(
    *,
    config: Annotated[Text, typer.Option(help="Plan the release of this file.")] = None,
    rows: Annotated[Text, typer.Option(help="n, in place of data.rows.")] = None,
    paper: Annotated[bool, typer.Option("--paper", help="The papers' parameters.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="The table of Theorem A.")] = False,
    row_count: Annotated[Text, typer.Option("--n", help="Private rows n.")] = None,
    queries: Annotated[Text, typer.Option(help="Queries m.")] = None,
    vc: Annotated[Text, typer.Option(help="VC dimension d.")] = None,
    epsilon: Annotated[Text, typer.Option(help="Epsilon.")] = None,
    delta: Annotated[Text, typer.Option(help="Delta (with --profile: of the answers).")] = None,
    alpha: Annotated[Text, typer.Option(help="Accuracy target.")] = None,
    beta: Annotated[Text, typer.Option(help="Failure probability.")] = None,
    gamma: Annotated[Text, typer.Option(help="Least error of the class, else 0.")] = None,
    dual_vc: Annotated[Text, typer.Option(help="Dual VC dimension, else the most.")] = None,
    hypotheses: Annotated[Text, typer.Option(help="Size of a finite class.")] = None,
    cutoff: Annotated[Text, typer.Option(help="Unstable answers T until the halt.")] = None,
    decisions: Annotated[
        Text, typer.Option(help="Decisions that one record may move, in place of a cutoff.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw answers against epsilon, T and n: a .png, .svg or .pdf file."),
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="A CSV of public points, on whom learners are tried out.")
    ] = None,
    populations: Annotated[
        Text, typer.Option(help="Made-up rules to try out; 0 for none. More take longer.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show every parameter of a release, and whether it can work; reads no private data."""
    chosen = {"--config": config is not None, "--paper": paper, "--profile": profile}
    options = {
        "--rows": rows,
        "--n": row_count,
        "--queries": queries,
        "--vc": vc,
        "--epsilon": epsilon,
        "--delta": delta,
        "--alpha": alpha,
        "--beta": beta,
        "--gamma": gamma,
        "--dual-vc": dual_vc,
        "--hypotheses": hypotheses,
        "--cutoff": cutoff,
        DECISIONS: decisions,
        "--plot": None if plot is None else str(plot),
        "--public": None if public is None else str(public),
        POPULATIONS: populations,
    }
    given = {option: text for option, text in options.items() if text is not None}
    form = _form(chosen, given)
    if form == "--config":
        document = _release(Path(config or ""), given)
    else:
        document = _paper(given) if form == "--paper" else _profile(given)
    _show(document, as_json=as_json)
    if form == "--config" and not document["feasible"]:
        raise typer.Exit(EXIT_INFEASIBLE)
    if form == "--config" and not as_json:
        from app.cli.init.next_step import after_plan

        typer.echo(after_plan(Path(config or ""), public=public))


def _form(chosen: Mapping[str, bool], given: Given) -> str:
    """Return the one form asked for, once its options are the ones given."""
    forms = [form for form, is_chosen in chosen.items() if is_chosen]
    if len(forms) != 1:
        raise ConfigurationError("plan", "takes one of --config FILE, --paper and --profile")
    (form,) = forms
    for option in given:
        if option not in (*FORMS[form], *OPTIONAL[form]):
            raise ConfigurationError(option, f"does not go with {form}")
    if DECISIONS in given and CUTOFF in given:
        raise ConfigurationError(CUTOFF, f"does not go with {DECISIONS}, which needs none")
    for option in FORMS[form]:
        if option not in given and not (option == CUTOFF and DECISIONS in given):
            raise ConfigurationError(option, f"is required with {form}")
    return form


def _release(config: Path, given: Given) -> Document:
    from app.cli.opening_progress import OpeningProgress
    from app.planning.curves import panels
    from app.planning.from_settings import plan_settings
    from app.planning.telling.plan_document import curves_document, plan_document
    from app.planning.trial.planned_answers import planned_answer_time
    from app.settings.settings import load_settings

    rows = numbers.count("--rows", given["--rows"]) if "--rows" in given else None
    settings = load_settings(config, os.environ)
    path = Path(given["--plot"]) if "--plot" in given else None
    if path is not None:
        check_plot(path)
    with OpeningProgress(transient=True) as progress:
        progress(PLANNING, 0, 1)
        planned = _tried_out(settings, plan_settings(settings, rows), given)
        answer_time = planned_answer_time(settings, planned)
        progress(PLANNING, 1, 1)
        document = plan_document(planned) | {
            "answer_time": answer_time and answer_time.document(settings)
        }
        if path is None:
            return document
        found = panels(
            planned.request,
            rows_needed=planned.answers.rows_needed,
            progress=lambda done, total: progress(PLOTTING, done, total),
        )
        if not found:
            raise ConfigurationError("--plot", "has nothing to draw: answers have no share")
        draw_plot(path, settings.release.name, planned, found)
    return document | curves_document(found)


def _tried_out(settings: Settings, planned: Plan, given: Given) -> Plan:
    """Predict what a plan gives, on public points where there are some."""
    from app.planning.trial.planned_answers import with_prediction
    from app.release.drawing import read_points

    points, populations = given.get("--public"), given.get(POPULATIONS)
    return with_prediction(
        settings,
        planned,
        points=None if points is None else read_points(settings, Path(points)),
        hypothesis_count=None if populations is None else _populations(populations),
    )


def _populations(text: str) -> int:
    found = 0 if text == "0" else numbers.count(POPULATIONS, text)
    if found > POPULATIONS_MAX:
        raise ConfigurationError(POPULATIONS, f"must be at most {POPULATIONS_MAX}")
    return found


def _paper(given: Given) -> Document:
    from app.planning.telling.plan_document import paper_document, theorems_document
    from app.privacy.paper.paper import paper_parameters
    from app.privacy.paper.row_theorems import sample_complexity

    targets = _targets(given)
    with _keys_as_options():
        found = paper_parameters(
            epsilon=targets.epsilon,
            delta=targets.delta,
            alpha=targets.alpha,
            beta=targets.beta,
            query_count=targets.query_count,
            row_count=numbers.count("--n", given["--n"]),
            dimension=targets.dimension,
        )
    return paper_document(found) | theorems_document(sample_complexity(targets))


def _targets(given: Given) -> Targets:
    from app.privacy.paper.row_theorems import Targets

    gamma, dual = given.get("--gamma"), given.get("--dual-vc")
    hypotheses = given.get("--hypotheses")
    return Targets(
        epsilon=numbers.positive("--epsilon", given["--epsilon"]),
        delta=numbers.probability("--delta", given["--delta"]),
        alpha=float(numbers.probability("--alpha", given["--alpha"])),
        beta=float(numbers.probability("--beta", given["--beta"])),
        query_count=numbers.count("--queries", given["--queries"]),
        dimension=numbers.count("--vc", given["--vc"]),
        best_error=0.0 if gamma is None else float(numbers.rate("--gamma", gamma)),
        dual_dimension=None if dual is None else numbers.count("--dual-vc", dual),
        hypothesis_count=None if hypotheses is None else numbers.size("--hypotheses", hypotheses),
    )


def _profile(given: Given) -> Document:
    from app.planning.mechanisms.stability_plan import profile_document
    from app.privacy.stability import decision_table, hit_table

    with _keys_as_options():
        epsilon = numbers.positive("--epsilon", given["--epsilon"])
        delta = numbers.probability("--delta", given["--delta"])
        if DECISIONS in given:
            decisions = numbers.count(DECISIONS, given[DECISIONS])
            return profile_document(
                decision_table.calibrate(epsilon=epsilon, delta=delta, decisions=decisions)
            )
        cutoff = numbers.count(CUTOFF, given[CUTOFF])
        return profile_document(hit_table.calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff))


@contextmanager
def _keys_as_options() -> Iterator[None]:
    """Name the option where accounting names a key of the configuration."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(OPTION_OF_KEY.get(error.key, error.key), error.problem) from None


def _show(document: Document, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    from app.cli.plan.table import print_document

    print_document(document)
