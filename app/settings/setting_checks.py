"""Checks of the configuration that involve several settings.

Each check raises a ``ConfigurationError`` that names the key to change. A configuration that is
valid, but that this version does not support, is refused when the release opens and not here.

The checks include the rules on the division of delta. They also include the rule that public cells
are configured if, and only if, the class of rules is ``cells``.

A joint privacy account is one budget for three mechanisms together: the answers, the draw of the
rule that relabels the rows, and the draw of the published classifier.

A student is a model that is trained on released answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from app.data.cell_tests import read_splits
from app.data.demo_data import DEMO_CLASSES, DEMO_FEATURE_NAMES, DEMO_LABEL, DEMO_SOURCE
from app.data.field_values import NO_DATE, CellError, boolean_name, twins
from app.data.schema import DateFeature, NumericFeature
from app.data.sources.sql_query_check import check_row_wise
from app.data.sources.stored_files import check_address, is_database
from app.errors import ConfigurationError
from app.learning.cells.class_registration import CELLS
from app.learning.predictors.predictor_classes import is_predictor_kind
from app.learning.registry import CLASSES, class_registration
from app.privacy.learner_properties import (
    AUTO,
    EXPONENTIAL,
    LEARNERS,
    RANKING,
    may_rank,
)
from app.privacy.mechanisms import MECHANISMS, serving_row
from app.settings.data_section import (
    CategoricalFeatureSettings,
    DataSettings,
    NumericFeatureSettings,
)
from app.settings.error_lines import printable
from app.settings.learning_sections import (
    ClassifierSettings,
    HypothesesSettings,
    LearnerSettings,
    StatisticsSettings,
    StudentSettings,
)
from app.settings.release_sections import AnswersSettings, PrivacySettings
from app.settings.server_sections import LedgerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.settings.data_section import DataSettings
    from app.settings.learning_sections import ClassifierSettings, HypothesesSettings
    from app.settings.release_sections import DeltaMechanism, PrivacySettings
    from app.settings.server_sections import EngineSettings


def check_cells(
    section: str, chosen: HypothesesSettings, written: Sequence[str] | None, data: DataSettings
) -> None:
    """Check that public cells are configured for the class ``cells``, and for no other.

    Args:
        section: the name of the section, ``hypotheses`` or ``classifier``.
        chosen: the class of rules of this section, with inherited keys.
        written: the list ``cells`` as written in the section itself; None if absent.
        data: the public schema.

    """
    if class_registration(chosen.kind).splits is None:
        if written:
            problem = f'are for class = "{CELLS.kind}", and it is "{chosen.kind}"'
            raise ConfigurationError(f"{section}.cells", problem)
        return
    if not chosen.cells:
        raise ConfigurationError(f"{section}.cells", f'is required with class = "{chosen.kind}"')
    if section == "hypotheses" and chosen.grid != "public":
        problem = f'must be "public" with class = "{chosen.kind}", whose cells are'
        raise ConfigurationError("hypotheses.grid", problem)
    read_splits(data.public_schema(), chosen.cells, section=section)


DELTA_MECHANISMS: tuple[DeltaMechanism, ...] = ("answers", "classifier", "statistics")


def check_delta_shares(privacy: PrivacySettings, *, classifier_uses_delta: bool) -> None:
    """Check that exactly the mechanisms that need delta have fractions of it, at most 1 in sum."""
    answers, classifier, statistics = (
        privacy.delta_share(name, classifier_uses_delta=classifier_uses_delta)
        for name in DELTA_MECHANISMS
    )
    if answers + classifier + statistics > 1:
        raise ConfigurationError("privacy.delta_shares", "add up to more than 1")
    if classifier > 0 and not classifier_uses_delta:
        raise ConfigurationError(
            "privacy.delta_shares.classifier",
            'must be 0: only a classifier with a share and a learner such as "linear" uses delta',
        )
    for name, share, is_needed in (
        ("answers", answers, privacy.shares.answers > 0),
        ("classifier", classifier, classifier_uses_delta),
        ("statistics", statistics, privacy.shares.statistics > 0),
    ):
        if is_needed and share == 0:
            verb = "has" if name == "classifier" else "have"
            problem = f"must be above 0 while {name} {verb} a share of epsilon"
            raise ConfigurationError(f"privacy.delta_shares.{name}", problem)


Lists = Mapping[str, Sequence[float | str]]

PAPER_DELTA_MAX = Decimal("0.036")
PLACEHOLDERS = frozenset({"changeme", "change-me", "change_me", "placeholder", "your-password"})
LEDGER_URL = re.compile(r"^(sqlite|postgresql)(\+\w+)?://")
LEDGER_IN_MEMORY = re.compile(r"^sqlite(\+\w+)?://(/(:memory:)?)?(\?.*)?$")
PASSWORD = re.compile(r"^[^/]*//[^/@]*:([^/]*)@")


def check_data(data: DataSettings) -> None:
    """Check that the settings of ``[data]`` fit each other and the kind of source."""
    _check_distinct("data.classes", data.classes)
    _check_distinct("data.missing", data.missing)
    _check_no_missing("data.classes", data.classes, data.missing)
    _check_one_name("data.classes", data.classes)
    _check_distinct("data.features", [feature.name for feature in data.features], ".name")
    for index, feature in enumerate(data.features):
        key = f"data.features[{index}]"
        if feature.name == data.label:
            raise ConfigurationError(f"{key}.name", "is the label too (data.label)")
        if isinstance(feature, NumericFeatureSettings):
            _check_numeric(key, feature)
        elif isinstance(feature, CategoricalFeatureSettings):
            _check_categorical(key, feature, data.missing)
        else:
            _check_boolean(key, data.missing)
    _check_person(data)
    if data.separator == data.decimal:
        raise ConfigurationError("data.decimal", "is data.separator too: set one of them")
    _check_source(data)


def _check_person(data: DataSettings) -> None:
    """A column that names persons, or rows, is no other column; persons are counted."""
    columns = (data.label, *(feature.name for feature in data.features))
    if data.id in columns:
        raise ConfigurationError("data.id", "is the label or a feature too; it must be neither")
    if data.person is None:
        if data.persons is not None:
            raise ConfigurationError("data.persons", "is for rows whose data.person names a column")
        return
    if data.rows is not None:
        problem = "is private where data.person names persons: give data.persons, their number"
        raise ConfigurationError("data.rows", problem)
    if data.person in columns:
        problem = "is the label or a feature too, and whom a row is about must reach no learner"
        raise ConfigurationError("data.person", problem)


def check_wanted(classifier: ClassifierSettings) -> None:
    """Check that a classifier for ranking has a learner that publishes scores."""
    if classifier.wanted == RANKING and not may_rank(classifier.learner):
        scored = " or ".join(f'"{name}"' for name in (*LEARNERS, AUTO) if may_rank(name))
        problem = f'"{RANKING}" takes a learner with scores: classifier.learner = {scored}'
        raise ConfigurationError("classifier.wanted", problem)


def why_sum(
    privacy: PrivacySettings,
    answers: AnswersSettings,
    learner: str | None,
    *,
    class_count: int,
    has_public_grid: bool,
) -> str:
    """Return the first condition of a joint privacy account that is not met; empty if all are.

    Without a joint account the shares of epsilon of all mechanisms are added up.

    Args:
        privacy: the shares of epsilon, and the rule that sets the noise.
        answers: the settings of the answers, with their mechanism.
        learner: the method that learns the published classifier; None if the classifier has no
            share.
        class_count: the number of labels.
        has_public_grid: whether the class of rules for relabelling is fixed by public choices.

    """
    shares = privacy.shares
    if shares.answers == 0:
        return "answers, and privacy.shares.answers is 0"
    row = serving_row(answers.mechanism, privacy.calibration, class_count=class_count)
    needed = {
        'calibration = "profile" or "certified", or a noisy vote of two labels': (
            row.may_share_account
        ),
        f'classifier.learner = "{EXPONENTIAL.name}" with calibration = "certified"': (
            not row.ends_before_classifier or learner in (None, EXPONENTIAL.name)
        ),
        "all rows: privacy.sampling = 1": privacy.sampling == 1,
        'hypotheses.grid = "public"': has_public_grid,
    }
    return next((what for what, is_met in needed.items() if not is_met), "")


def check_joint(needed: str) -> None:
    """Refuse a joint privacy account if ``needed`` names a condition that is not met."""
    if needed:
        raise ConfigurationError("privacy.accounting", f'"joint" takes {needed}')


def check_privacy(privacy: PrivacySettings, *, classifier_uses_delta: bool) -> None:
    """Check the shares of epsilon and delta, and the settings that the calibration limits."""
    shares = privacy.shares
    total = sum(
        map(Fraction, (shares.relabel, shares.answers, shares.classifier, shares.statistics)),
        start=Fraction(0),
    )
    if total > 1:
        raise ConfigurationError("privacy.shares", "add up to more than 1")
    if total == 0:
        raise ConfigurationError("privacy.shares", "are all 0; nothing could be released")
    check_delta_shares(privacy, classifier_uses_delta=classifier_uses_delta)
    name = privacy.calibration
    if MECHANISMS[name].is_printed and privacy.delta > PAPER_DELTA_MAX:
        raise ConfigurationError(
            "privacy.delta", f"must be at most {PAPER_DELTA_MAX} with the {name} calibration"
        )
    if MECHANISMS[name].is_printed and privacy.sampling != 1:
        raise ConfigurationError(
            "privacy.sampling", f"is for the other calibrations: {name} takes a sample of its own"
        )
    _check_composed(privacy)


def _check_composed(privacy: PrivacySettings) -> None:
    """A composed budget is of both kinds, and covers this release at least."""
    composed = privacy.composed
    if composed.epsilon is None and composed.delta is None:
        return
    for name, stated, own in (
        ("epsilon", composed.epsilon, privacy.epsilon),
        ("delta", composed.delta, privacy.delta),
    ):
        key = f"privacy.composed.{name}"
        if stated is None:
            raise ConfigurationError(key, "is required: the other half of the budget is stated")
        if stated < own:
            raise ConfigurationError(key, f"is below privacy.{name}, which it covers")


def _check_numeric(key: str, feature: NumericFeatureSettings) -> None:
    """Check the public cuts of a numeric feature and their shares."""
    cuts, shares = feature.thresholds, feature.threshold_shares
    if cuts is not None:
        _check_cuts(f"{key}.thresholds", cuts, feature.bounds)
    if shares is None:
        return
    if cuts is None:
        raise ConfigurationError(f"{key}.threshold_shares", "needs thresholds beside it")
    _check_length(f"{key}.threshold_shares", shares, len(cuts), "cut of thresholds")
    if any(later > earlier for earlier, later in pairwise(shares)):
        raise ConfigurationError(
            f"{key}.threshold_shares", "must not increase from one cut to the next"
        )


def _check_categorical(
    key: str, feature: CategoricalFeatureSettings, missing: Sequence[str]
) -> None:
    """Check the public categories and their shares."""
    _check_distinct(f"{key}.categories", feature.categories)
    _check_no_missing(f"{key}.categories", feature.categories, missing)
    _check_one_name(f"{key}.categories", feature.categories, missing)
    shares = feature.category_shares
    if shares is None:
        return
    _check_length(f"{key}.category_shares", shares, len(feature.categories), "category")
    if sum(Fraction(repr(share)) for share in shares) > 1:
        raise ConfigurationError(f"{key}.category_shares", "add up to more than 1")


def _check_boolean(key: str, missing: Sequence[str]) -> None:
    """Check that what is true or false is not missing."""
    for index, token in enumerate(missing):
        with suppress(CellError):
            if boolean_name(token, frozenset()) is not None:
                problem = f'is true or false too, and {key}.kind is "boolean"'
                raise ConfigurationError(f"data.missing[{index}]", problem)


def _check_source(data: DataSettings) -> None:
    """A query belongs to a database, and a database needs one."""
    is_address = is_database(data.source.get_secret_value())
    check_address(data.source.get_secret_value())
    if is_address and data.query is None:
        raise ConfigurationError("data.query", "is required: data.source is a database")
    if data.query is not None and not is_address:
        raise ConfigurationError("data.query", "is for a database; data.source is a file")
    _check_placeholder("data.source", data.source.get_secret_value())
    if data.query is not None:
        check_row_wise(data.query)
    if data.source.get_secret_value() == DEMO_SOURCE:
        _check_demo_schema(data)


def _check_demo_schema(data: DataSettings) -> None:
    """The embedded rows fit one schema only."""
    if (data.label, data.classes) != (DEMO_LABEL, DEMO_CLASSES):
        raise ConfigurationError("data.classes", "and data.label must be the embedded demo's")
    spans = [
        (feature.name, *feature.bounds)
        for feature in data.features
        if isinstance(feature, NumericFeatureSettings)
    ]
    if spans != [(name, 0.0, 1.0) for name in DEMO_FEATURE_NAMES]:
        raise ConfigurationError("data.features", "must be the embedded demo's eight, in [0, 1]")


def check_answers(answers: AnswersSettings, privacy: PrivacySettings) -> None:
    """Check the answering mechanism, and that a classifier that answers has a share of epsilon."""
    name = privacy.calibration
    if MECHANISMS[name].is_printed and answers.mechanism != MECHANISMS[name].mechanism:
        problem = (
            f'must be "{MECHANISMS[name].mechanism}" with the {name} calibration, which is one'
        )
        raise ConfigurationError("answers.mechanism", problem)
    shares = privacy.shares
    if shares.classifier > 0:
        return
    if shares.answers == 0 and shares.statistics == 0:
        raise ConfigurationError(
            "privacy.shares.classifier", "must be above 0 while answers is 0: nothing would serve"
        )
    if shares.answers == 0:
        return
    for key, successor in answers.sequels.items():
        if successor == "classifier":
            raise ConfigurationError(
                f"answers.{key}", '"classifier" needs privacy.shares.classifier above 0'
            )


def check_engine(engine: EngineSettings) -> None:
    """Check that a cluster's address is set if the engine needs one, and only then.

    Raises:
        ConfigurationError: ``engine.address`` is missing, or set without need.

    """
    if engine.name == "dask" and engine.address is None:
        raise ConfigurationError("engine.address", 'is needed where engine.name = "dask"')
    if engine.name != "dask" and engine.address is not None:
        raise ConfigurationError("engine.address", 'is taken by engine.name = "dask" only')


def check_scores(answers: AnswersSettings, privacy: PrivacySettings, data: DataSettings) -> None:
    """Check that answers with scores have two classes and the mechanism ``stability``."""
    if answers.output == "label":
        if "precision" in answers.model_fields_set:
            raise ConfigurationError("answers.precision", 'is for answers.output = "score"')
        return
    row = serving_row(answers.mechanism, privacy.calibration, class_count=len(data.classes))
    for holds, needed in (
        (len(data.classes) == len(("no", "yes")), "two data.classes"),
        (row.test is not None, 'answers.mechanism = "stability"'),
        (not row.is_printed, 'privacy.calibration = "profile" or "svt"'),
        (privacy.shares.answers > 0, "privacy.shares.answers above 0"),
    ):
        if not holds:
            raise ConfigurationError("answers.output", f'"score" needs {needed}')


def check_learner(section: str, learner: LearnerSettings | StudentSettings) -> None:
    """Check that a section does not set both a built-in training rule and an estimator.

    Args:
        section: the name of the section, ``learner`` or ``student``.
        learner: the settings of this section.

    """
    if learner.estimator is not None and "rule" in learner.model_fields_set:
        raise ConfigurationError(f"{section}.estimator", "give a rule or an estimator, not both")
    if learner.params and learner.estimator is None:
        raise ConfigurationError(f"{section}.params", "are for an estimator; a rule takes none")


def check_tests(section: str, chosen: HypothesesSettings, lists: Lists, data: DataSettings) -> None:
    """Check that lists of feature tests name known features, thresholds and categories.

    A feature test is a yes-or-no question about a feature, such as age >= 40.

    Args:
        section: the name of the section, ``hypotheses`` or ``classifier``.
        chosen: the class of rules of this section, with inherited keys.
        lists: the lists of feature tests as written in the section itself.
        data: the public schema.

    """
    for name, values in lists.items():
        _check_list(printable(f"{section}.tests.{name}"), name, values, data)
    # The hypotheses of a table name two labels of any number.
    if class_registration(chosen.kind).numbers is not None and len(data.classes) > len(
        ("no", "yes")
    ):
        raise ConfigurationError(f"{section}.class", f"{chosen.kind} is for two classes")
    _check_some_test(section, chosen, data)


def check_statistics(
    written: StatisticsSettings,
    covered: HypothesesSettings,
    data: DataSettings,
    privacy: PrivacySettings,
) -> None:
    """Check the statistics' class of rules, feature tests, and that the accuracy is not set twice.

    The section ``[statistics]`` sets the accuracy of the statistics table or ``updates``, the
    largest number of rules whose counts get noise of their own, but not both.

    Args:
        written: the section itself.
        covered: the class of rules of the statistics, with inherited keys.
        data: the public schema.
        privacy: the shares of epsilon; without a share for statistics, the class of rules is not
            checked.

    """
    for name, values in written.tests.items():
        _check_list(printable(f"statistics.tests.{name}"), name, values, data)
    if written.updates is not None and written.accuracy is not None:
        raise ConfigurationError("statistics.accuracy", "give updates or an accuracy, not both")
    if privacy.shares.statistics == 0:
        return
    if not class_registration(covered.kind).covers:
        problem = f'cannot be "{covered.kind}", whose cells cannot be listed: set '
        listed = sorted(row.kind for row in CLASSES.values() if row.covers)
        raise ConfigurationError("statistics.class", problem + ", ".join(listed))
    _check_some_test("statistics", covered, data)


def check_absent_hypotheses(privacy: PrivacySettings, classifier: ClassifierSettings) -> None:
    """Refuse a configuration without ``[hypotheses]`` if another setting needs it.

    A published classifier needs ``[hypotheses]`` only if its learner is ``exponential`` or ``auto``
    and ``[classifier]`` sets no class of rules. Other learners use the feature tests of
    ``[classifier]``.

    Args:
        privacy: the shares of epsilon, which determine the mechanisms of the release.
        classifier: the class of rules and the learner of the published classifier.

    """
    draws = classifier.learner in (EXPONENTIAL.name, AUTO) and classifier.kind is None
    users = {
        "an ensemble answers": privacy.shares.answers > 0,
        "there are statistics": privacy.shares.statistics > 0,
        "the classifier is drawn from a class": privacy.shares.classifier > 0 and draws,
    }
    using = [user for user, is_there in users.items() if is_there]
    if using:
        raise ConfigurationError("hypotheses", f"is required where {' and '.join(using)}")


def check_predictors(
    section: str, chosen: HypothesesSettings, written: Sequence[str] | None
) -> None:
    """Check that distinct functions are listed for the class of rules ``finite``, and no other.

    Args:
        section: the name of the section, ``hypotheses`` or ``classifier``.
        chosen: the class of rules of this section, with inherited keys.
        written: the import paths as written in the section itself; None if absent.

    """
    key = f"{section}.predictors"
    _check_distinct(key, written or ())
    if chosen.kind == "finite" and not chosen.predictors:
        raise ConfigurationError(key, 'is required with class = "finite"')
    if written and chosen.kind != "finite":
        raise ConfigurationError(key, f'are for class = "finite", and it is "{chosen.kind}"')


def check_path(hypotheses: HypothesesSettings, published: HypothesesSettings) -> None:
    """Refuse a folder of user code if no class of rules uses predictors from user code."""
    own = [each for each in (hypotheses, published) if is_predictor_kind(each.kind)]
    if hypotheses.path is not None and not own:
        problem = "is for predictors of your own, and no class is of them; leave it out"
        raise ConfigurationError("hypotheses.path", problem)


def check_size(answers: AnswersSettings, data: DataSettings) -> None:
    """Check that there are at least as many rows (or persons) as models."""
    count, unit = data.unit_count, data.unit
    if answers.ensemble != "auto" and count is not None and answers.ensemble > count:
        problem = f"is above data.{unit}s: a learner needs a {unit}"
        raise ConfigurationError("answers.ensemble", problem)


def check_ledger(ledger: LedgerSettings) -> None:
    """Check that the ledger's database is stored on a disk, not in memory."""
    url = ledger.url.get_secret_value()
    if not LEDGER_URL.match(url):
        raise ConfigurationError(
            "ledger.url", "must start with sqlite:/// or postgresql+psycopg://"
        )
    if LEDGER_IN_MEMORY.match(url):
        raise ConfigurationError("ledger.url", "must name a file: a ledger in memory would be lost")
    _check_placeholder("ledger.url", url)


def _check_list(key: str, name: str, values: Sequence[float | str], data: DataSettings) -> None:
    """Check the list of one feature."""
    feature = next((feature for feature in data.features if feature.name == name), None)
    if feature is None:
        raise ConfigurationError(key, "names no feature of data.features")
    expected = {NumericFeature.kind: "a number", DateFeature.kind: NO_DATE.removeprefix("is not ")}
    for index, value in enumerate(values):
        if isinstance(value, str) is (feature.kind == NumericFeature.kind):
            kind = expected.get(feature.kind, "a category")
            raise ConfigurationError(f"{key}[{index}]", f"must be {kind}")
    public = feature.feature()
    if isinstance(public, NumericFeature):
        _check_cuts(key, _cuts(key, values, public), (public.lower, public.upper))
        return
    names = [value for value in values if isinstance(value, str)]
    _check_distinct(key, names)
    for index, value in enumerate(names):
        if value not in (*public.categories, *data.missing):
            raise ConfigurationError(f"{key}[{index}]", "is no category of the feature")


def _cuts(key: str, values: Sequence[float | str], feature: NumericFeature) -> list[float]:
    """Return the cuts of a list as numbers."""
    cuts = []
    for index, value in enumerate(values):
        try:
            cuts.append(feature.cut(value))
        except ValueError:
            problem = NO_DATE.replace("is not", "must be")
            raise ConfigurationError(f"{key}[{index}]", problem) from None
    return cuts


def _check_some_test(section: str, chosen: HypothesesSettings, data: DataSettings) -> None:
    """A class of tests needs one; a class of numbers needs as many as it has sides."""
    tested = [feature for feature in data.features if chosen.tests.get(feature.name, (True,))]
    row = class_registration(chosen.kind)
    if row.numbers is not None:
        numbers = sum(isinstance(feature, NumericFeatureSettings) for feature in tested)
        _check_numbers(section, chosen.kind, row.numbers, numbers)
    elif row.takes_tests and not tested:
        raise ConfigurationError(f"{section}.tests", "leaves no test at all")


def _check_numbers(section: str, kind: str, taken: tuple[int, int | None], numbers: int) -> None:
    """A class of two sides takes some numeric features."""
    least, most = taken
    if numbers < least:
        needed = "a test of a number" if least == 1 else "tests of two numbers"
        raise ConfigurationError(f"{section}.class", f"{kind} needs {needed}")
    if most is not None and numbers > most:
        raise ConfigurationError(
            f"{section}.class",
            f"{kind} takes tests of at most {most} numbers, and {numbers} have some: leave a "
            f"feature out by an empty list in [{section}.tests]",
        )


def _check_placeholder(key: str, url: str) -> None:
    """Refuse an address whose password was never filled in."""
    password = PASSWORD.match(url)
    if password and (password[1].lower() in PLACEHOLDERS or password[1].startswith("<")):
        raise ConfigurationError(key, "has a placeholder for its password")


def _check_cuts(key: str, cuts: Sequence[float], bounds: tuple[float, float]) -> None:
    """Cuts increase and lie within the bounds."""
    for index, cut in enumerate(cuts):
        if not bounds[0] <= cut <= bounds[1]:
            raise ConfigurationError(f"{key}[{index}]", "lies outside the feature's bounds")
        if index and cut <= cuts[index - 1]:
            raise ConfigurationError(f"{key}[{index}]", "must be above the cut before it")


def _check_length(key: str, values: Sequence[float], expected: int, item: str) -> None:
    """A list of shares has one for each item."""
    if len(values) != expected:
        raise ConfigurationError(key, f"must have {expected} items, one for each {item}")


def _check_distinct(key: str, values: Sequence[str], suffix: str = "") -> None:
    """No value occurs twice."""
    first_index: dict[str, int] = {}
    for index, value in enumerate(values):
        if value in first_index:
            raise ConfigurationError(
                f"{key}[{index}]{suffix}", f"is the same as {key}[{first_index[value]}]{suffix}"
            )
        first_index[value] = index


def _check_no_missing(key: str, values: Sequence[str], missing: Sequence[str]) -> None:
    """A token of ``missing`` is not a value as well."""
    for index, value in enumerate(values):
        if value in missing:
            raise ConfigurationError(f"{key}[{index}]", "is a token of data.missing too")


def _check_one_name(key: str, names: Sequence[str], missing: Sequence[str] = ()) -> None:
    """A number has one name: a typed 1 could be ``1`` and ``1.0``, but no ``01``."""
    for found in (twins(names), *(twins((*names, token)) for token in missing)):
        if found is not None:
            raise ConfigurationError(
                key, '"{}" and "{}" are two names of one number'.format(*found)
            )
