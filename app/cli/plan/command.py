"""``conclave plan``: predict the answers that a configuration gives, without private rows.

The command has three forms. It plans the release of a configuration file; or it prints the
parameters and numbers of rows that theorems of Nandi and Bassily (2020) and of Bassily, Thakkar and
Thakurta (2018) require (``docs/algorithms.md``); or it prints the table with the probability of an
unstable answer at each distance (the number of votes that may change without a change of the
winning label), for given epsilon, delta and cutoff T (``app/privacy/stability/proof.md``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli import numeric_options as numbers
from app.cli.plan.configured_plan import (
    DEMAND,
    GENERATIONS,
    OPTIONS,
    POPULATIONS,
    TOML,
    VERBOSE,
    WANT_ACCURACY,
    WANT_ANSWERS,
    plan_config,
)
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.planning.mechanisms.planning_registration import Document
    from app.privacy.paper.sample_complexity_theorems import Targets

EXIT_INFEASIBLE: Final = 1
DECISIONS: Final = "--decisions"
CUTOFF: Final = "--cutoff"
FORMS: Final = {
    "--config": (),
    "--paper": ("--n", "--queries", "--vc", "--epsilon", "--delta", "--alpha", "--beta"),
    "--profile": ("--epsilon", "--delta", "--cutoff"),
}
OPTIONAL: Final = {
    "--config": OPTIONS,
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
    """Add the command ``conclave plan`` to the application."""
    application.command("plan")(plan)


def plan(
    *,
    config: Annotated[Text, typer.Option(help="Configuration file of the release to plan.")] = None,
    rows: Annotated[Text, typer.Option(help="Number of rows n, instead of data.rows.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Print the parameters of the papers.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print the table of Theorem A.")
    ] = False,
    row_count: Annotated[Text, typer.Option("--n", help="Number n of private rows.")] = None,
    queries: Annotated[Text, typer.Option(help="Number m of queries.")] = None,
    vc: Annotated[Text, typer.Option(help="VC dimension d.")] = None,
    epsilon: Annotated[Text, typer.Option(help="Epsilon.")] = None,
    delta: Annotated[Text, typer.Option(help="Delta (with --profile: of the answers).")] = None,
    alpha: Annotated[Text, typer.Option(help="Accuracy target.")] = None,
    beta: Annotated[Text, typer.Option(help="Failure probability.")] = None,
    gamma: Annotated[Text, typer.Option(help="Least error rate in the class; default 0.")] = None,
    dual_vc: Annotated[Text, typer.Option(help="Dual VC dimension; default the largest.")] = None,
    hypotheses: Annotated[Text, typer.Option(help="Size of a finite class.")] = None,
    cutoff: Annotated[
        Text, typer.Option(help="Number T of unstable answers until the halt.")
    ] = None,
    decisions: Annotated[
        Text, typer.Option(help="Decisions that one record may change, in place of a cutoff.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw answers against epsilon, T and n: a .png, .svg or .pdf file."),
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="A CSV of public points, for trials of the learners.")
    ] = None,
    populations: Annotated[
        Text, typer.Option(help="Number of made-up rules to try; 0 for none. More take longer.")
    ] = None,
    want_answers: Annotated[
        Text, typer.Option(help="Wanted answers: print the cheapest epsilon, rows and settings.")
    ] = None,
    want_accuracy: Annotated[
        Text, typer.Option(help="Wanted accuracy, as a share of the best rule's: 0.98 loses 0.02.")
    ] = None,
    generations: Annotated[
        bool,
        typer.Option(
            "--generations", help="Print what generations sustain together, and the quorum to set."
        ),
    ] = False,
    demand: Annotated[
        Text,
        typer.Option(help="With --generations: answers wanted for each; answers.queries if unset."),
    ] = None,
    as_toml: Annotated[
        bool, typer.Option("--toml", help="Print the recommended settings, to paste.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print every figure, in words and tables.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show every parameter of a release, and whether it can work, without reading a private row."""
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
        TOML: "" if as_toml else None,
        VERBOSE: "" if verbose else None,
        WANT_ANSWERS: want_answers,
        WANT_ACCURACY: want_accuracy,
        GENERATIONS: "" if generations else None,
        DEMAND: demand,
    }
    given = {option: text for option, text in options.items() if text is not None}
    form = _form(chosen, given)
    if form == "--config":
        holds = plan_config(Path(config or ""), given, as_json=as_json)
        if not holds:
            raise typer.Exit(EXIT_INFEASIBLE)
        if not (as_json or as_toml or want_answers or want_accuracy or generations):
            from app.cli.init.next_command import after_plan

            typer.echo(after_plan(Path(config or ""), public=public), err=True)
        return
    _show(_paper(given) if form == "--paper" else _profile(given), as_json=as_json)


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


def _paper(given: Given) -> Document:
    from app.planning.output.plan_document import paper_document, theorems_document
    from app.privacy.paper.paper import paper_parameters
    from app.privacy.paper.sample_complexity_theorems import sample_complexity

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
    from app.privacy.paper.sample_complexity_theorems import Targets

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
    from app.privacy.stability import cell_table, hit_table

    with _keys_as_options():
        epsilon = numbers.positive("--epsilon", given["--epsilon"])
        delta = numbers.probability("--delta", given["--delta"])
        if DECISIONS in given:
            decisions = numbers.count(DECISIONS, given[DECISIONS])
            return profile_document(
                cell_table.calibrate(epsilon=epsilon, delta=delta, decisions=decisions)
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
    from app.cli.plan.table import print_document, print_json

    if as_json:
        print_json(document)
    else:
        print_document(document)
