"""A public schema of every kind of feature, for the tests of readers."""

from __future__ import annotations

from app.data.schema import CategoricalFeature, NumericFeature, Schema

AGE = NumericFeature(
    name="age", lower=17.0, upper=90.0, thresholds=(25.0, 50.0), threshold_shares=(0.8, 0.2)
)
HOURS = NumericFeature(name="hours", lower=0.0, upper=100.0)
WORK = CategoricalFeature(name="work", categories=("Private", "State"), category_shares=(0.7, 0.1))
SEX = CategoricalFeature(name="sex", categories=("F",))
PEOPLE = Schema(
    label="income", classes=("low", "high"), features=(AGE, HOURS, WORK, SEX), missing=("?",)
)
