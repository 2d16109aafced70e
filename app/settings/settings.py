"""The whole configuration as one frozen object: ``conclave.toml`` and the environment.

The object is built once, by :func:`load_settings` or :func:`demo_settings`, and passed as an
argument; there is no global object. An error in the configuration is a ``ConfigurationError`` of
one line that names the key. The tables, the types of values and the checks of several keys are in
the other modules of this folder.

The module also contains the configuration of the built-in demo, which environment variables may
change.

A student is a model that is trained on released answers and may answer after the models' last
answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal, Self, get_args

from pydantic import SecretStr, ValidationError, model_validator

from app.data.demo_data import (
    DEMO_CLASSES,
    DEMO_FEATURE_NAMES,
    DEMO_LABEL,
    DEMO_ROW_COUNT,
    DEMO_SOURCE,
)
from app.errors import ConfigurationError
from app.privacy.learner_properties import uses_delta
from app.privacy.mechanisms import serving_row
from app.settings import setting_checks, toml_and_environment
from app.settings.data_section import (
    CategoricalFeatureSettings,
    DataSettings,
    NumericFeatureSettings,
)
from app.settings.error_lines import configuration_error, with_feature_name
from app.settings.field_types import Section, section_of
from app.settings.generations_section import (
    ErasureSettings,
    GenerationsSettings,
    Grown,
    check_generations,
)
from app.settings.learning_sections import (
    ClassifierSettings,
    HypothesesSettings,
    LearnerSettings,
    StatisticsSettings,
    StudentSettings,
)
from app.settings.release_sections import (
    AnswersSettings,
    DeltaMechanism,
    PrivacySettings,
    ReleaseSettings,
)
from app.settings.server_sections import (
    EngineSettings,
    LedgerSettings,
    LogsSettings,
    ServerSettings,
    TelemetrySettings,
)
from app.settings.setting_checks import check_cells


def demo_tables() -> dict[str, object]:
    """Return the demo's configuration, except for the ledger's address."""
    return {
        "release": {"name": "demo"},
        "data": {
            "source": DEMO_SOURCE,
            "rows": DEMO_ROW_COUNT,
            "label": DEMO_LABEL,
            "classes": list(DEMO_CLASSES),
            "features": [
                {"name": name, "kind": "numeric", "bounds": [0, 1]} for name in DEMO_FEATURE_NAMES
            ],
        },
        "hypotheses": {"class": "trees", "depth": 3, "bins": 8},
        "classifier": {"bins": 16},
        "privacy": {
            "epsilon": 1,
            "shares": {
                "relabel": Decimal("0.1"),
                "answers": Decimal("0.6"),
                "classifier": Decimal("0.3"),
            },
        },
        "answers": {
            "queries": 2000,
            "cutoff": 20,
            "ensemble": 800,
            "after": "classifier",
            "on_cutoff": "classifier",
        },
    }


# What stands for `[hypotheses]` where nothing uses it.
ANY_CLASS: Final = HypothesesSettings.model_validate({"class": "trees"})
DEFAULT_LEDGER_NAME = "conclave.db"
DEMO_LEDGER_NAME = "conclave-demo.db"
JOINT_EPSILON_MAX: Final = 50
"""Up to which a new release is one account unless it says otherwise: draws, truncated to parts of
``2**-192``, pay ``e**epsilon`` times that."""
JOINT_DELTA_MAX: Final = Decimal("0.001")
"""Up to which it is so with a noisy descent: above, at a small epsilon, its moment would cost more
than its share."""


class Settings(Section):
    """The whole configuration; validated, frozen, paths absolute."""

    release: ReleaseSettings
    data: DataSettings
    hypotheses: HypothesesSettings = ANY_CLASS
    learner: LearnerSettings = LearnerSettings()
    classifier: ClassifierSettings = ClassifierSettings()
    student: StudentSettings = StudentSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    privacy: PrivacySettings = PrivacySettings()
    answers: AnswersSettings = AnswersSettings()
    generations: GenerationsSettings | None = None
    erasure: ErasureSettings = ErasureSettings()
    engine: EngineSettings = EngineSettings()
    ledger: LedgerSettings
    server: ServerSettings = ServerSettings()
    logs: LogsSettings = LogsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def read(cls, tables: toml_and_environment.Tables) -> Self:
        """Return the validated settings, given the tables of the file and the environment.

        Raises:
            ConfigurationError: a setting is invalid; the error names the first such key.

        """
        try:
            return cls.model_validate(tables)
        except ValidationError as error:
            raise configuration_error(error, tables, _known_keys) from None
        except ConfigurationError as error:
            key = with_feature_name(error.key, tables)
            raise ConfigurationError(key, error.problem) from None

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        """Check the rules that span keys."""
        if "hypotheses" not in self.model_fields_set:
            setting_checks.check_absent_hypotheses(self.privacy, self.classifier)
        setting_checks.check_data(self.data)
        setting_checks.check_engine(self.engine)
        setting_checks.check_privacy(self.privacy, classifier_uses_delta=self.classifier_uses_delta)
        setting_checks.check_wanted(self.classifier)
        setting_checks.check_answers(self.answers, self.privacy)
        setting_checks.check_scores(self.answers, self.privacy, self.data)
        setting_checks.check_learner("learner", self.learner)
        setting_checks.check_learner("student", self.student)
        setting_checks.check_tests("hypotheses", self.hypotheses, self.hypotheses.tests, self.data)
        setting_checks.check_tests(
            "classifier", self.published, self.classifier.tests or {}, self.data
        )
        setting_checks.check_statistics(self.statistics, self.covered, self.data, self.privacy)
        setting_checks.check_predictors("hypotheses", self.hypotheses, self.hypotheses.predictors)
        setting_checks.check_predictors("classifier", self.published, self.classifier.predictors)
        setting_checks.check_path(self.hypotheses, self.published)
        check_cells("hypotheses", self.hypotheses, self.hypotheses.cells, self.data)
        check_cells("classifier", self.published, self.classifier.cells, self.data)
        if self.privacy.accounting == "joint":
            setting_checks.check_joint(self.why_sum)
        setting_checks.check_size(self.answers, self.data)
        check_generations(
            Grown(
                self.generations,
                self.privacy,
                self.answers,
                self.data,
                self.hypotheses,
                self.classifier,
                self.erasure,
            )
        )
        setting_checks.check_ledger(self.ledger)
        return self

    @property
    def ledger_url(self) -> str:
        """Return the address of the ledger, which may contain a password."""
        return self.ledger.url.get_secret_value()

    @property
    def source(self) -> str:
        """Return the path or address of the private rows, which may contain a password."""
        return self.data.source.get_secret_value()

    def with_source(self, source: str) -> Self:
        """Return the settings with another source of private rows, otherwise unchanged.

        Args:
            source: the new value of ``data.source``; a relative path is relative to the working
                directory.

        """
        tables = toml_and_environment.resolve_paths({"data": {"source": source}}, folder=Path.cwd())
        data = tables["data"]
        resolved = str(data["source"]) if isinstance(data, dict) else source
        changed = {"source": SecretStr(resolved), "rows": None, "persons": None}
        return self.model_copy(update={"data": self.data.model_copy(update=changed)})

    def with_budget(self, epsilon: Decimal, delta: Decimal) -> Self:
        """Return the settings with another epsilon and delta, divided in the same shares."""
        changed = {"epsilon": epsilon, "delta": delta}
        return self.model_copy(update={"privacy": self.privacy.model_copy(update=changed)})

    @property
    def is_embedded_demo(self) -> bool:
        """Whether the rows are the built-in public demonstration data."""
        return self.source == DEMO_SOURCE

    @property
    def published(self) -> HypothesesSettings:
        """Return the class of rules of ``[classifier]``, with absent keys from ``[hypotheses]``.

        If ``[classifier]`` does not set ``bins``, the public ``thresholds`` of features are used as
        its lists of thresholds.
        """
        return self.classifier.inherit(self.hypotheses, grids=self.data.grids())

    @property
    def names_bins(self) -> bool:
        """Whether ``bins``, the number of intervals per feature, is set for the classifier."""
        return self.classifier.bins is not None or "bins" in self.hypotheses.model_fields_set

    @property
    def classifier_uses_delta(self) -> bool:
        """Whether learning the published classifier needs a share of delta."""
        return uses_delta(self.classifier.learner) and self.privacy.shares.classifier > 0

    def delta_share(self, mechanism: DeltaMechanism) -> Fraction:
        """Return the fraction of delta for a mechanism: as configured, or the default."""
        uses = self.classifier_uses_delta
        return self.privacy.delta_share(mechanism, classifier_uses_delta=uses)

    @property
    def accounting(self) -> Literal["joint", "sum"]:
        """Return the rule of privacy accounting: as configured, or a new release's default.

        With ``sum`` the shares of epsilon of all mechanisms add up. With ``joint`` relabelling,
        answers and classifier have one joint budget. The default is ``joint`` if the conditions of
        a joint budget are met (:attr:`why_sum`), except in these cases:

        * the release has generations;
        * neither relabelling nor the classifier has a share of epsilon;
        * statistics have a share of epsilon;
        * epsilon is above 50;
        * delta is above 0.001, and the classifier is learned by noisy gradient descent;
        * the calibration is ``certified``.
        """
        if self.privacy.accounting is not None:
            return self.privacy.accounting
        if self.generations is not None:
            return "sum"
        shares = self.privacy.shares
        has_draw = shares.relabel > 0 or shares.classifier > 0
        fits = has_draw and shares.statistics == 0 and self.privacy.epsilon <= JOINT_EPSILON_MAX
        fits = fits and (not self.classifier_uses_delta or self.privacy.delta <= JOINT_DELTA_MAX)
        row = serving_row(
            self.answers.mechanism,
            self.privacy.calibration,
            class_count=len(self.data.classes),
        )
        fits = fits and not row.ends_before_classifier
        is_joint = fits and not self.why_sum
        return "joint" if is_joint else "sum"

    @property
    def why_sum(self) -> str:
        """Return the first reason why there can be no joint privacy account; empty if there can.

        A joint privacy account is one budget for relabelling, answers and classifier together.
        """
        return setting_checks.why_sum(
            self.privacy,
            self.answers,
            self.classifier.learner if self.privacy.shares.classifier > 0 else None,
            class_count=len(self.data.classes),
            has_public_grid=self.hypotheses.grid == "public",
        )

    @property
    def taught(self) -> LearnerSettings:
        """Return the learner of the student model, with absent keys from ``[learner]``."""
        return self.student.inherit(self.learner)

    @property
    def student_may_follow(self) -> bool:
        """Whether a student model may answer after the models' last answer."""
        return "student" in self.answers.sequels.values()

    @property
    def covered(self) -> HypothesesSettings:
        """Return the class of rules of ``[statistics]``, with absent keys from ``[hypotheses]``."""
        return self.statistics.inherit(self.hypotheses)


SECTIONS = frozenset(Settings.model_fields)
TEXT_KINDS = frozenset({str, SecretStr, Path, type(None)})


def load_settings(
    path: Path | None, environ: Mapping[str, str], *, working_directory: Path | None = None
) -> Settings:
    """Return the settings of a configuration file and the environment, which takes precedence.

    Args:
        path: the path of ``conclave.toml``; None for the built-in demo.
        environ: the names and values of environment variables, such as ``os.environ``.
        working_directory: the folder to which relative paths in the environment are relative; None
            for the process's working directory.

    Raises:
        ConfigurationError: a setting is invalid; the error names its key.

    """
    if path is None:
        return demo_settings(environ, folder=working_directory)
    return Settings.read(_tables(path, environ, working_directory))


def load_simulation_settings(
    path: Path, environ: Mapping[str, str], *, working_directory: Path | None = None
) -> Settings:
    """Return the settings for the command ``conclave simulate``, which reads no rows.

    It needs the labels and the sections ``[privacy]`` and ``[answers]``. Other required settings
    that are absent get placeholders.

    Raises:
        ConfigurationError: a setting is invalid; the error names its key.

    """
    return Settings.read(
        toml_and_environment.with_placeholders(_tables(path, environ, working_directory))
    )


def demo_settings(
    environ: Mapping[str, str],
    *,
    folder: Path | None = None,
    overrides: Mapping[tuple[str, ...], object] | None = None,
) -> Settings:
    """Return the settings of the demo; environment variables take precedence.

    Args:
        environ: the names and values of environment variables, such as ``os.environ``.
        folder: the folder of the ledger ``conclave-demo.db``, unless an environment variable sets
            the ledger's address; None for the working directory.
        overrides: values by their key (a tuple that begins with the section), which take precedence
            over the demo's settings and the environment.

    Raises:
        ConfigurationError: a setting is invalid; the error names its key.

    """
    ledger = toml_and_environment.sqlite_address((folder or Path.cwd()) / DEMO_LEDGER_NAME)
    tables = {**demo_tables(), "ledger": {"url": ledger}}
    tables = toml_and_environment.overlay(tables, _environment(environ, Path.cwd()))
    return Settings.read(toml_and_environment.overlay(tables, list((overrides or {}).items())))


def _tables(
    path: Path, environ: Mapping[str, str], working_directory: Path | None
) -> toml_and_environment.Tables:
    """Merge the default ledger, the file and the environment."""
    default = toml_and_environment.sqlite_address(path.absolute().parent / DEFAULT_LEDGER_NAME)
    tables = toml_and_environment.read_file(path)
    ledger = tables.get("ledger", {})
    if isinstance(ledger, dict):
        tables["ledger"] = {"url": default, **ledger}
    return toml_and_environment.overlay(
        tables, _environment(environ, working_directory or Path.cwd())
    )


def _environment(environ: Mapping[str, str], folder: Path) -> list[tuple[tuple[str, ...], object]]:
    """Read what the environment sets."""
    return toml_and_environment.read_environment(
        environ, sections=SECTIONS, is_text=_is_text, folder=folder
    )


def _is_text(keys: tuple[str, ...]) -> bool:
    """Whether the setting at a path takes a plain text, never JSON."""
    annotation: object = Settings
    for key in keys:
        annotation = _fields(annotation).get(key)
    kinds = get_args(annotation) or (annotation,)
    return all(kind in TEXT_KINDS or isinstance(kind, str) for kind in kinds)


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys of the table at a location; a feature's are those of every kind."""
    annotation: object = Settings
    for part in location:
        if isinstance(part, int):
            features = (NumericFeatureSettings, CategoricalFeatureSettings)
            return sorted({key for each in features for key in _fields(each)})
        annotation = _fields(annotation).get(part)
        kinds = [kind for kind in get_args(annotation) if _fields(kind)]
        annotation = kinds[0] if kinds else annotation
    return list(_fields(annotation))


def _fields(annotation: object) -> dict[str, object]:
    """Return the annotations of a table's settings by the keys that the file uses."""
    section = section_of(annotation)
    fields = {} if section is None else section.model_fields
    return {field.alias or name: field.annotation for name, field in fields.items()}
