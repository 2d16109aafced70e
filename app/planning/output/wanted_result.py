"""The result of a search for wanted answers and accuracy, in three lines and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.planning.output.epsilon_sentence import epsilon_words
from app.planning.output.prediction_document import learner_at_once
from app.planning.output.short_plan import settings_words

if TYPE_CHECKING:
    from app.planning.plan import Plan
    from app.planning.trial.search_for_wanted import Attempt, Offer, Wanted


def wanted_lines(plan: Plan, offer: Offer) -> tuple[str, ...]:
    """Return three lines: what is wanted, the release found that gives it, and alternatives.

    If no release that was tried gives what is wanted, the second line has the nearest ones. The
    third line also explains epsilon.
    """
    return (
        f"Wanted: {_wanted(offer.wanted)}.",
        _cheapest(offer),
        f"{_otherwise(plan, offer)} {epsilon_words((offer.best or offer.own).request)}",
    )


def wanted_document(offer: Offer) -> dict[str, object]:
    """Return the result of a search as a JSON document; members that do not apply are null."""
    best = offer.best
    return {
        "answers": offer.wanted.answers,
        "loss": offer.wanted.loss,
        "reached": best is not None,
        "by_epsilon": _document(offer.by_epsilon),
        "by_rows": None if offer.by_rows is None else _document(offer.by_rows),
        "published_epsilon": offer.published_epsilon,
    }


def _document(attempt: Attempt) -> dict[str, object]:
    choice = attempt.choice
    return {
        "reached": attempt.reached,
        "epsilon": float(attempt.request.epsilon),
        "n": attempt.request.row_count,
        "labels": attempt.labels,
        "loss": attempt.loss,
        "settings": None if choice is None else settings_words(choice),
    }


def _wanted(wanted: Wanted) -> str:
    answers = "" if wanted.answers is None else f"{wanted.answers:,} answers"
    loss = "" if wanted.loss is None else f"at most {wanted.loss:.2%} wrong beyond the best rule"
    return ", ".join(part for part in (answers, loss) if part)


def _cheapest(offer: Offer) -> str:
    best = offer.best
    if best is None:
        tried = [offer.by_epsilon, *([] if offer.by_rows is None else [offer.by_rows])]
        nearest = "; ".join(f"{_place(each)} gives {_given(each)}" for each in tried)
        return f"Cannot be had as far as was tried. What comes nearest: {nearest}."
    choice = _shares(best) if best.choice is None else settings_words(best.choice)
    return f"Cheapest of those tried: {_place(best)}, {choice} (--toml). It gives {_given(best)}."


def _shares(attempt: Attempt) -> str:
    shares = {
        each.mechanism.value: float(each.epsilon / attempt.request.epsilon)
        for each in attempt.request.charges
    }
    return "shares " + " and ".join(f"{name} = {share:g}" for name, share in shares.items())


def _place(attempt: Attempt) -> str:
    request = attempt.request
    return f"epsilon {float(request.epsilon):g} with {request.row_count:,} {request.unit}s"


def _given(attempt: Attempt) -> str:
    """Say what a release gives of what is wanted."""
    parts = []
    if attempt.labels is not None:
        limit = min(attempt.labels, attempt.request.query_count)
        whom = (
            "nine made-up rules in ten" if attempt.choice else "learners of whom nine in ten agree"
        )
        parts.append(f"{round(limit):,} labels or more by {whom}")
    if attempt.loss is not None:
        chance = 1 - attempt.request.beta
        parts.append(
            f"at most {attempt.loss:.2%} wrong beyond the best rule (probability {chance:.0%})"
        )
    return " and ".join(parts) or "no bound that is known: rows keep labels of their own"


def _otherwise(plan: Plan, offer: Offer) -> str:
    """Say what else reaches it: more rows, or a classifier that is published at once."""
    ways = []
    if offer.by_rows is not None and offer.by_rows.reached and offer.by_epsilon.reached:
        ways.append(f"{_place(offer.by_rows)} gives {_given(offer.by_rows)}")
    if learner_at_once(plan) is not None:
        epsilon = offer.published_epsilon
        at = "" if epsilon is None else f' from epsilon {epsilon:g} on with learner = "exponential"'
        ways.append(f"a classifier that is published at once gives any number of answers{at}")
    return f"Otherwise: {'; '.join(ways) or 'nothing else was found'}."
