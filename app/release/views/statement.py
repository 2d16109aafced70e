"""The text of a privacy statement, line by line: for registries, and on one page.

There are public registries of deployments of differential privacy, which use a common form. Each
line of the statement has the name of a field of this form, a value, and a sentence. All values are
public: the configuration, the ledger's entries, the noise parameters in use, and the report of an
audit if one is given.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec

from app.ledger.entries.fold import JOINT
from app.ledger.releases import total
from app.privacy.budget.account import ACCOUNT_PROOF, ONE_ACCOUNT
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanism_registration import in_short
from app.release.classifier.learner_table import chosen_learner, rare_in_words, smallest_share
from app.release.composed_budget import composed_view
from app.release.terms.answer_terms import answering_registration, calibration_piece
from app.release.terms.privacy_unit import IN_WORDS
from app.release.views.parameters_in_words import shares_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.ledger.entries.fold import LedgerState
    from app.privacy.budget.composition import Charge
    from app.release.classifier.learner_table import ChosenLearner
    from app.release.terms.privacy_unit import Unit
    from app.release.views.stated_release import AuditFound, Stated

MECHANISMS: Final = "deployment.implementation.mechanisms[]"
OUTSIDE: Final = {
    "Loading": "What the operator's terminal says while records load, before anything is served.",
    "Checking": "What `conclave check` counts, on the same terminal.",
    "Choices made by looking": (
        "Bounds, categories, cuts, k, T, classes and public points that somebody chose by looking "
        "at the records: they must be public, and no entry accounts for them."
    ),
    "Row-wise sources": "A view or function of a database that mixes rows before they are read.",
    "Time and memory": "How long a reply takes beyond its padding, and what the machine shows.",
    "A process that ends while its disk is full": "Draws that could not be recorded.",
    "A machine that fails": "When memory, files or threads run out.",
    "Third-party learners": "What a learner of the operator's own does past its chunk.",
    "The database": "It holds private state: whoever reads it has more than is promised.",
    "A ledger deleted or rolled back": "Questions answered afresh without a charge.",
    "The queries": "What clients ask is recorded, and protected from nobody.",
}
"""What the promise leaves out, as docs/guarantee.md lists it."""

EXPONENTIAL_OF_ROWS: Final = "Lemma L: the exponential mechanism over the rows' own labellings"
RELABEL: Final = "the exponential mechanism over a class fixed without the records"
STATISTICS: Final = (
    "private multiplicative weights over public cells, composed exactly",
    "app/privacy/multiplicative_weights/proof.md",
)
RELABEL_PROOF: Final = "app/privacy/exponential/relabel_proof.md"
SCORES: Final = ", inside soft labels (app/privacy/soft_labels/proof.md)"
COMPOSITION_PROOF: Final = "app/privacy/voting/query_decision_proof.md"
SAMPLED: Final = (
    "Each learner is trained on {count:,} {unit}s of its chunk at most, by lot; epsilon and delta "
    "are those of all {unit}s, for nothing is claimed of the sample: "
    "app/privacy/voting/votes_proof.md."
)
GENERATIONS: Final = (
    "Answers go on for as long as records are appended, generation by generation. An unstable "
    "answer is charged to every generation that voted, and each retires with the last that its "
    "budget bought, number {cutoff:,} at most; new queries wait while fewer than {quorum:,} vote. "
    "{lies}, and what is promised does not add up over others: "
    "app/privacy/generations/accounts_proof.md."
)
LIES: Final[dict[Unit, str]] = {
    "row": "A record lies in one generation",
    "person": "A person lies in one generation, that of the first record, with all that come later",
}
ERASURES: Final = {
    "secret": (
        "That a record was erased or corrected, when, and how many were, is protected as what it "
        "held is: the promise is between any two histories of a record. Every tick looks the same: "
        "app/privacy/generations/accounts_proof.md."
    ),
    "public": (
        "How many records each tick forgets is published. That a record was erased, and when, is "
        "not protected; what it held is, and all other records keep the whole promise: "
        "app/privacy/generations/accounts_proof.md."
    ),
}
"""What is said of erasures, by the setting ``erasure.count``."""
PUBLISHED_IN_TURN: Final = (
    "Each generation's part in the published classifier is drawn on its own records and published "
    "before it joins. It goes on from public weights, so that a record is charged for one part: "
    "app/privacy/noisy_gradient/proof.md."
)
ONE_VOTE_PROOF: Final = "app/privacy/voting/votes_proof.md"


class Line(NamedTuple):
    """One fact in a privacy statement.

    Attributes:
        place: the path of the fact's field in the registries' form (or of a field that is added to
            this form), for example ``a.b.c``; if it ends in ``[]`` the fact is an item of a list.
        heading: the heading under which the page shows the fact.
        value: the value for programs; None if there is none.
        words: the sentence for people.

    """

    place: str
    heading: str
    value: object
    words: str


def statement(stated: Stated) -> list[Line]:
    """Return every line of a privacy statement, in reading order."""
    return [
        *_release(stated),
        *_protected(stated),
        *_strength(stated),
        *_model(),
        *_mechanisms(stated),
        *_composition(stated),
        *_outside(),
        *_evidence(stated),
    ]


def statement_document(lines: Sequence[Line]) -> dict[str, object]:
    """Return a privacy statement as one JSON document."""
    document: dict[str, object] = {}
    for line in lines:
        *parents, last = line.place.split(".")
        at = document
        for parent in parents:
            at = cast("dict[str, object]", at.setdefault(parent, {}))
        if last.endswith("[]"):
            items = cast("list[object]", at.setdefault(last.removesuffix("[]"), []))
            items.append(line.value)
        else:
            at[last] = line.value
    return document


def _sentence(place: str, heading: str, words: str) -> Line:
    return Line(place, heading, words, words)


def _release(stated: Stated) -> Iterator[Line]:
    name, data, count = stated.configuration.name, stated.settings.data, stated.row_count
    units = IN_WORDS[data.unit].learned_from
    rows = units if count is None else f"{count:,} {units}"
    is_open = stated.state.release is not None
    yield Line("deployment.product.name", "Release", name, f'"{name}".')
    yield Line("deployment.product.data_product_type", "Release", "Machine learning model", "")
    yield _sentence(
        "deployment.product.description",
        "Release",
        f'Says which "{data.label}" a question of public features gets, one of '
        f"{len(data.classes)}, as learned from {rows}.",
    )
    yield Line(
        "release.is_open",
        "Release",
        is_open,
        "It is open: what is promised is the first entry of its ledger, and stays."
        if is_open
        else "It is not open yet: this is what its configuration would promise.",
    )


def _protected(stated: Stated) -> Iterator[Line]:
    unit = stated.settings.data.unit
    words = IN_WORDS[unit]
    loss, flavor = "deployment.privacy_loss", "deployment.dp_flavor"
    yield Line(f"{loss}.privacy_unit", "Unit", unit, "")
    yield _sentence(f"{loss}.privacy_unit_description", "Unit", words.protected)
    yield Line(f"{flavor}.input_metric", "Neighbours", words.neighbours, words.data_sets)
    yield Line(f"{flavor}.bound_on_input_distance", "Neighbours", 1, "")
    yield _sentence(f"{flavor}.unprotected_quantities", "Neighbours", words.public)
    named = stated.settings.data.id or stated.settings.data.person
    if stated.settings.generations is not None and named is not None:
        count = stated.settings.erasure.count
        yield Line("erasure.count", "Neighbours", count, ERASURES[count])


def _strength(stated: Stated) -> Iterator[Line]:
    loss, configuration = "deployment.privacy_loss", stated.configuration
    epsilon, delta = float(configuration.epsilon), float(configuration.delta)
    grown = math.exp(epsilon) if epsilon < math.log(1e300) else math.inf
    yield Line("deployment.dp_flavor.name", "Promise", "Approximate DP", "")
    yield _sentence(
        f"{loss}.privacy_parameters_description",
        "Promise",
        "For every event E about everything that leaves the server once the release is open, "
        "P[E on S] <= e^epsilon * P[E on S'] + delta, for all neighbours S and S'.",
    )
    yield Line(
        f"{loss}.privacy_parameters.epsilon",
        "Epsilon",
        epsilon,
        f"{in_short(epsilon)}. But for delta, nothing becomes more than {in_short(grown)} times as "
        "likely by one record being another.",
    )
    yield Line(
        f"{loss}.privacy_parameters.delta",
        "Delta",
        delta,
        f"{in_short(delta)}. A probability that the promise of epsilon leaves out.",
    )


def _model() -> Iterator[Line]:
    model = "deployment.model"
    yield Line(f"{model}.model_name", "Against", "Central", "")
    yield _sentence(
        f"{model}.actors",
        "Against",
        "Anybody who asks, anything and as often as wanted, each question chosen after every "
        "earlier answer, with all other clients and across restarts, knowing every other record. "
        "The operator and the machine hold the records, and are trusted.",
    )
    yield Line(f"{model}.access_type", "Against", "Interactive", "")
    yield Line(f"{model}.data_source_type", "Against", "Static", "")
    yield _sentence(
        "deployment.implementation.pre_processing_eda_hyperparameter_tuning",
        "Against",
        "Nothing is tuned on all records: schema and parameters are the operator's, made without "
        "a look at them.",
    )


def _mechanisms(stated: Stated) -> Iterator[Line]:
    words = shares_in_words(stated.settings, stated.row_count, stated.state.release)
    for mechanism, charge in stated.configuration.charges.items():
        theorem, proof = _theorem(stated, mechanism)
        status = _status(stated.state, mechanism)
        meaning, formula = words[mechanism]
        value = {
            "mechanism": mechanism.value,
            "epsilon": float(charge.epsilon),
            "delta": float(charge.delta),
            "status": status,
            "formula": formula,
            "theorem": theorem,
            "proof": proof,
        }
        told = f"{mechanism.value}: {_cost(charge)}, {status}. {meaning} By {theorem}: {proof}."
        yield Line(MECHANISMS, "Mechanisms", value, told)
    if stated.configuration.has(Mechanism.ANSWERS):
        yield from _limits(stated)
    yield from _classifier(stated)


def _classifier(stated: Stated) -> Iterator[Line]:
    """Say what ``auto`` takes, and which labels a classifier may give to nobody."""
    charge, row_count = stated.configuration.charges.get(Mechanism.CLASSIFIER), stated.row_count
    if charge is None:
        return
    if stated.settings.generations is not None:
        yield Line("classifier.published", "Limits", "each generation", PUBLISHED_IN_TURN)
    chosen = _learner(stated)
    if chosen.reason:
        learner = chosen.row.learner.name
        yield Line("classifier.learner", "Limits", learner, f"{chosen.reason}.")
    if row_count is not None:
        share = smallest_share(stated.settings, chosen.row, charge, row_count)
        words = rare_in_words(share, count=row_count, unit=stated.settings.data.unit)
        yield Line("classifier.smallest_share", "Limits", min(share, 1.0), words)


def _learner(stated: Stated) -> ChosenLearner:
    return chosen_learner(stated.settings, row_count=stated.row_count, opened=stated.state.release)


def _limits(stated: Stated) -> Iterator[Line]:
    """Say what ends the answers, and how far one record reaches."""
    state, answers = stated.state, stated.settings.answers
    cutoff = None if stated.calibration is None else stated.calibration.cutoff
    rules = stated.settings.generations
    queries = answers.queries if rules is None else None
    limits = {"queries": queries, "cutoff": cutoff, "ensemble": state.votes or None}
    counted = "units of scores" if answers.output == "score" else "unstable ones"
    ends = "" if cutoff is None else f", or {cutoff:,} {counted}"
    words = IN_WORDS[stated.settings.data.unit]
    told = f"Fresh answers end after {answers.queries:,}{ends}."
    if rules is not None:
        table = stated.settings.privacy.table
        most = cutoff if table is None else table.hits_max
        lies = LIES[stated.settings.data.unit]
        told = GENERATIONS.format(cutoff=most, quorum=rules.quorum, lies=lies)
    yield Line("answers", "Limits", limits, told)
    rows_max = stated.settings.learner.rows_max
    if rows_max is not None:
        told = SAMPLED.format(count=rows_max, unit=stated.settings.data.unit)
        yield Line("learner.rows_max", "Limits", rows_max, told)
    yield _sentence(
        "one_record",
        "Limits",
        words.some_votes
        if answering_registration(stated.settings).is_printed
        else f"{words.one_vote}: {ONE_VOTE_PROOF}.",
    )


def _theorem(stated: Stated, mechanism: Mechanism) -> tuple[str, str]:
    """Return what proves a mechanism's claim, and where."""
    settings = stated.settings
    if mechanism is Mechanism.RELABEL:
        is_public = settings.hypotheses.grid == "public"
        return RELABEL if is_public else EXPONENTIAL_OF_ROWS, RELABEL_PROOF
    if mechanism is Mechanism.CLASSIFIER:
        learner = _learner(stated).row.learner
        return learner.theorem, learner.proof
    if mechanism is Mechanism.STATISTICS:
        return STATISTICS
    row = answering_registration(settings, stated.state.release)
    return row.theorem + (SCORES if settings.answers.output == "score" else ""), row.proof


def _status(state: LedgerState, mechanism: Mechanism) -> str:
    if state.charge_of(mechanism.value) is not None:
        return "charged"
    return "reserved" if state.reserve_of(mechanism.value) is not None else "configured"


def _cost(charge: Charge) -> str:
    return f"epsilon {in_short(float(charge.epsilon))}, delta {in_short(float(charge.delta))}"


def _composition(stated: Stated) -> Iterator[Line]:
    accounting = "deployment.accounting"
    kind = stated.settings.accounting
    yield Line("accounting", "Accounting", kind, "")
    yield _sentence(
        f"{accounting}.composition",
        "Accounting",
        "The shares add up, as exact fractions, to epsilon and delta at most; each is charged "
        "once, whole and on record before a record is read for it, in whatever order, "
        f"and however clients ask: {COMPOSITION_PROOF}.",
    )
    if kind == JOINT:
        yield _sentence("account", "Accounting", f"{ONE_ACCOUNT.capitalize()}: {ACCOUNT_PROOF}.")
    if stated.settings.privacy.sampling < 1:
        yield _sentence(
            "sampling",
            "Accounting",
            f"The ensemble is made of a random part of the {stated.settings.data.unit}s; its "
            f"shares are what it costs in all of them: {RELABEL_PROOF}.",
        )
    yield _sentence(
        f"{accounting}.post_processing",
        "Accounting",
        "Replays, counters, the ledger, metrics and a student of the answers are made of what "
        "those sent out, and cost nothing.",
    )
    composed = _together(stated)
    yield Line(
        "composed",
        "Accounting",
        composed,
        "Another release about the same people adds its own epsilon and delta; one in another "
        "ledger is not counted here."
        if composed is None
        else f"The {composed['releases']} releases of this ledger promise together epsilon "
        f"{composed['epsilon']:g} and delta {composed['delta']:g}; those elsewhere add theirs.",
    )


def _together(stated: Stated) -> dict[str, object] | None:
    """Return what the releases of a ledger promise together; None for one that is alone there."""
    if stated.state.release is not None or not stated.openings:
        return composed_view(stated.openings)
    there, own = total(stated.openings), stated.configuration
    return {
        "epsilon": float(there.epsilon + own.epsilon),
        "delta": float(there.delta + own.delta),
        "releases": len(stated.openings) + 1,
    }


def _outside() -> Iterator[Line]:
    for subject, words in OUTSIDE.items():
        value = {"subject": subject, "words": words}
        yield Line("outside[]", "Not covered", value, f"{subject}: {words}")


def _evidence(stated: Stated) -> Iterator[Line]:
    yield _audit(stated.audit)
    yield Line("software.name", "Made by", "conclave", "")
    yield Line("software.version", "Made by", stated.version, f"conclave {stated.version}.")
    head = stated.state.head
    known = None if stated.state.release is None else {"sequence": head.sequence, "head": head.hash}
    there = f"Entry {head.sequence}, {head.hash}." if known else "There is none yet."
    yield Line("ledger", "Ledger", known, there)
    yield _table(stated)


def _audit(found: AuditFound | None) -> Line:
    if found is None:
        words = "None is given: `conclave audit --json` makes a report, which --audit takes."
        return Line("audit", "Audit", None, words)
    largest = [
        "beyond every number" if each.share_of_claim is None else f"{each.share_of_claim:.0%} of it"
        for each in (found.exact, found.sampled)
    ]
    verdict = "was not refuted" if found.holds else "WAS REFUTED"
    words = (
        f"The claim of the answers, epsilon {in_short(found.claim.epsilon)} and delta "
        f"{in_short(found.claim.delta)}, {verdict}: the lower bounds found are {largest[0]} "
        f"exactly and {largest[1]} by sampling, and {len(found.broken_conditions)} conditions of "
        "the proofs are broken."
    )
    return Line("audit", "Audit", msgspec.to_builtins(found), words)


def _table(stated: Stated) -> Line:
    """Return the hash of what decides the answers, which a start checks and serves."""
    if stated.calibration is None:
        return Line("answers_table", "Table", None, "Answers have no share, and no table.")
    ((name, body),) = calibration_piece(stated.calibration).items()
    digest = hashlib.sha256(body).hexdigest()
    words = f"What decides the answers, {name}, has the SHA-256 {digest}."
    return Line("answers_table", "Table", {"name": name, "sha256": digest}, words)
