"""Relabelling: labels are the drawn hypothesis's, rows stay as they are."""

from __future__ import annotations

from fractions import Fraction

from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential import relabel
from tests.builders.mechanisms.drawing import parameters, private_rows


def test_rows_take_the_labels_of_the_drawn_hypothesis() -> None:
    """Every label is what the hypothesis predicts for its row."""
    bits, labels = private_rows()
    relabelled = relabel.draw(parameters(), (bits, labels), ScriptedNoise(seeded_words(1)))
    predicted = relabelled.private_hypothesis.predict(bits)
    assert relabelled.private_labels.tolist() == predicted.tolist()


def test_it_draws_what_the_exponential_mechanism_draws() -> None:
    """With the same noise the hypothesis is the exponential mechanism's own."""
    rows = private_rows()
    relabelled = relabel.draw(parameters(), rows, ScriptedNoise(seeded_words(2)))
    assert relabelled.private_hypothesis == exponential.draw(
        parameters(), rows, ScriptedNoise(seeded_words(2))
    )


def test_labels_become_realisable_by_the_class() -> None:
    """Noise in the labels is gone: the class has a tree without an error."""
    bits, labels = private_rows()
    relabelled = relabel.draw(
        parameters(Fraction(30)), (bits, labels), ScriptedNoise(seeded_words(3))
    )
    assert (labels != (bits[:, 1] == 1)).sum() == 4
    assert relabelled.private_labels.tolist() == bits[:, 1].tolist()
