"""A private release held in memory: the same mechanisms as a server's, without a ledger.

During its lifetime the object keeps the record that a server keeps in its ledger: a share of
epsilon is charged before a row is read for it, an answer is recorded before it is given, a vector
that was queried before gets its recorded answer, and nothing is drawn twice. The record is not
written to disk and ends with the object. The object must not be copied, because each copy would
spend the same budget again.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import structs

from app.answering.answers import Answer, with_score
from app.answering.replays import AnswerSource, answer_source
from app.data.vectors import encode, replay_key
from app.errors import BudgetExhaustedError, ContainedError, IntegrityError, InvariantError
from app.learning.ensemble import cells_of
from app.ledger.entries.digests import cell_key
from app.privacy.budget.composition import Mechanism
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Phase
from app.privacy.voting.tallies import private_tallies
from app.release.charged_draw import draw_once, no_turn
from app.release.classifier.learner_table import check_classifier_draw, classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.drawing import draw_ensemble
from app.release.opening import CHARGED_AT_OPENING, SECRET_BYTES
from app.release.progress import no_progress
from app.release.terms.answer_terms import answering_parameters, decides_cells
from app.release.terms.draw_parameters import ensemble_parameters
from app.release.terms.hopeless_release import refuse_hopeless
from app.release.views.budget import Queries, Unstable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

    from app.data.rows import PrivateRows
    from app.data.vectors import Vector
    from app.learning.hypothesis import Ensemble
    from app.noise.source import NoiseSource
    from app.privacy.budget.composition import Charge
    from app.privacy.voting.query_decision import Outcome, Parameters
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.terms.configuration import Configuration
    from app.release.terms.draw_parameters import EnsembleParameters

BATCH_QUERIES: Final = 1024
EXHAUSTED: Final = (
    "the budget of answers is spent, and nothing follows them: vectors that were answered get "
    "their answers again, and new ones none"
)
FAILED: Final = "the release has stopped after an internal failure, and answers nothing new"
COPIED: Final = (
    "a release in memory cannot be copied or pickled: each copy would spend its budget again"
)
FORKED: Final = (
    "this process is a fork of the one that holds the release: both would spend its budget; "
    "ask in the process that opened it"
)


class MemoryRelease:
    """One private release on rows in memory, without a ledger."""

    def __init__(
        self, configuration: Configuration, *, rows: PrivateRows, noise: NoiseSource
    ) -> None:
        """Spend the budget, then draw and train everything that opening a release draws and trains.

        Args:
            configuration: the public configuration; ``halt`` or ``classifier`` may follow the
                ensemble.
            rows: the private rows.
            noise: the source of randomness.

        Raises:
            ConfigurationError: public numbers show that a draw is impossible or the release
                hopeless; no row was read.

        """
        parameters = ensemble_parameters(configuration, row_count=rows.count, progress=no_progress)
        self._is_hopeless = refuse_hopeless(configuration, parameters, row_count=rows.count)
        check_classifier_draw(configuration, None, row_count=rows.count)
        self._process = os.getpid()
        self._lock = Lock()
        self._configuration, self._noise = configuration, noise
        self._private_rows: PrivateRows | None = rows
        self._private_ensemble: Ensemble | None = None
        self._classifier: PublishedClassifier | None = None
        self._charged = [
            charge for name, charge in configuration.charges.items() if name in CHARGED_AT_OPENING
        ]
        self._splits = cells_of(configuration.hypotheses) if decides_cells(configuration) else None
        self._recorded: dict[bytes, Answer] = {}  # by vector
        self._by_cell: dict[bytes, Answer] = {}  # by public cell, or by vector again
        self._asked: list[Vector] = []
        self._size = 0
        self._precision = _precision(configuration)
        if parameters is None:
            mechanism = answering_parameters(configuration.settings, None, None, ensemble_size=0)
            self._mechanism: Parameters = mechanism
        else:
            self._mechanism = self._draw(parameters, rows)
        self._state = query_decision.initial_state(self._mechanism, noise)
        self._forget()

    def _draw(self, parameters: EnsembleParameters, rows: PrivateRows) -> Parameters:
        """Draw and fit the ensemble under charges that are noted; return its mechanism."""
        drawn = draw_ensemble(
            self._configuration,
            parameters,
            rows=rows,
            secret=self._noise.secret(SECRET_BYTES),
            noise=self._noise,
            progress=no_progress,
        )
        self._private_ensemble, self._size = drawn.parts.private_ensemble, drawn.size
        return drawn.parts.mechanism

    @property
    def is_hopeless(self) -> bool:
        """Whether the release was opened although it will give almost no stable answers."""
        return self._is_hopeless

    @property
    def phase(self) -> Phase:
        """The release's phase, which decides whether votes or a classifier answer a new vector."""
        return query_decision.phase(self._mechanism, self._state)

    def answer(self, vectors: Sequence[Vector]) -> list[Answer | BudgetExhaustedError]:
        """Return the answers to vectors in order, with an error in place of a refused answer.

        Args:
            vectors: feature vectors in the order of the schema, as returned by
                :func:`app.data.vectors.parse_features`.

        Raises:
            ContainedError: the release stopped at an internal failure, of which the error shows
                nothing.
            IntegrityError: the calling process is a fork of the process that opened the release.

        """
        answers: list[Answer | BudgetExhaustedError] = []
        with self._contained():
            for start in range(0, len(vectors), BATCH_QUERIES):
                answers += self._answer_batch(vectors[start : start + BATCH_QUERIES])
        self.publish_if_due()
        return answers

    def publish_if_due(self) -> None:
        """Draw the published classifier, after charging its cost, if it is due and not drawn yet.

        It is due if the release's next new answer is to come from it.

        Raises:
            ContainedError: the release stopped at an internal failure, of which the error shows
                nothing.
            IntegrityError: the calling process is a fork of the process that opened the release.

        """
        with self._contained():
            if self.phase is Phase.CLASSIFIER and not self._state.halted:
                self._published()

    @property
    def answers_scores(self) -> bool:
        """Whether answers have scores as well as labels."""
        return self._precision is not None

    @property
    def classifier(self) -> PublishedClassifier | None:
        """The published classifier, which is public; None until it is drawn."""
        return self._classifier

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """Take the lock, and halt for good at a failure, which may depend on rows."""
        if os.getpid() != self._process:
            raise IntegrityError(FORKED)
        with self._lock:
            try:
                yield
            except Exception:  # noqa: BLE001 -- containment: it may depend on rows
                self._state = replace(self._state, halted=True)
                raise ContainedError(FAILED) from None

    def budget(self) -> dict[str, object]:
        """Return the body of ``GET /budget``, without the release's name and ledger."""
        state, mechanism = self._state, self._mechanism
        charges = self._configuration.charges.values()
        return {
            "unit": self._configuration.settings.data.unit,
            "phase": self.phase.value,
            "epsilon": float(self._configuration.epsilon),
            "delta": float(self._configuration.delta),
            "charged": _shares(self._charged),
            "reserved": _shares([each for each in charges if each not in self._charged]),
            "queries": Queries.of(state.answered_count, mechanism.answer_limit).model_dump(),
            "unstable": Unstable.of(state.unstable_count, mechanism.cutoff).model_dump(),
            "ensemble": {"size": self._size},
            "hopeless": self.is_hopeless,
        }

    def _answer_batch(self, vectors: Sequence[Vector]) -> list[Answer | BudgetExhaustedError]:
        keys, cells = [replay_key(vector) for vector in vectors], self._cells_of(vectors)
        by_key, by_cell = self._recorded, self._by_cell
        asked = list(zip(keys, cells, vectors, strict=True))
        new = {cell: vector for _, cell, vector in asked if cell not in by_cell}
        private_values = {}
        if new and self._private_ensemble is not None and self.phase is Phase.ENSEMBLE:
            values = encode(self._configuration.schema, list(new.values()))
            precisions = [self._precision] * len(new)
            tallies = private_tallies(self._private_ensemble, values, precisions)
            private_values = dict(zip(new, tallies, strict=True))
        answers: list[Answer | BudgetExhaustedError] = []
        for key, cell, vector in asked:
            # A vector is its own idempotency key here: after the switch too it is replayed.
            source = answer_source(self.phase, by_key=by_key.get(key), by_vector=by_cell.get(cell))
            if source is AnswerSource.ENSEMBLE:
                self._state, outcome = query_decision.step(
                    self._mechanism, self._state, private_values[cell], self._noise
                )
                recorded = self._recorded_answer(outcome)
                self._record(key, cell, vector, recorded)
                answers.append(recorded)
            elif source is AnswerSource.CLASSIFIER:
                answers.append(self._classified(vector))
            elif isinstance(source, AnswerSource):  # refused: nothing waits for generations here
                answers.append(BudgetExhaustedError(EXHAUSTED))
            else:
                self._record(key, cell, vector, source)
                answers.append(structs.replace(source, replayed=True))
        return answers

    def _cells_of(self, vectors: Sequence[Vector]) -> list[bytes]:
        """Return what each vector's answer is found by: its public cell, or the vector itself."""
        if self._splits is None:
            return [replay_key(vector) for vector in vectors]
        values = encode(self._configuration.schema, vectors)
        return list(map(cell_key, self._splits.places(values).tolist()))

    def _recorded_answer(self, outcome: Outcome) -> Answer:
        """Return the newest answer as it is given for the first time."""
        classes = self._configuration.schema.classes
        answer = Answer(
            query_id=self._state.answered_count,
            label=None if outcome.label is None else classes[outcome.label],
            stable=outcome.stable,
            phase=Phase.ENSEMBLE.value,
            replayed=False,
        )
        if self._precision is None:
            return answer
        return with_score(answer, outcome.released_bin, self._precision)

    def _record(self, key: bytes, cell: bytes, vector: Vector, recorded: Answer) -> None:
        """Record an answer before it is given: for its vector, and for the cell of that."""
        self._by_cell[cell] = recorded
        if key not in self._recorded:
            self._recorded[key] = recorded
            self._asked.append(vector)
        self._forget()

    def _classified(self, vector: Vector) -> Answer:
        label = self._published().predict(vector)
        return Answer(None, label, stable=True, phase=Phase.CLASSIFIER.value, replayed=False)

    def _published(self) -> PublishedClassifier:
        """Return the classifier, drawn once under its charge."""
        classifier = self._classifier or draw_once(
            turn=no_turn(),  # this object's lock is held
            charge=self._charge_classifier,
            draw=self._draw_classifier,
            publish=self._publish_classifier,
        )
        if classifier is None:
            raise InvariantError(FAILED)
        return classifier

    def _charge_classifier(self) -> bool:
        charge = self._configuration.charges[Mechanism.CLASSIFIER]
        if charge not in self._charged:
            self._charged.append(charge)
        return self._classifier is None

    def _publish_classifier(self, drawn: PublishedClassifier) -> bool:
        self._classifier = drawn
        self._forget()
        return True

    def _draw_classifier(self) -> PublishedClassifier:
        """Draw it on the queries asked so far."""
        rows, configuration = self._private_rows, self._configuration
        if rows is None:
            raise InvariantError(FAILED)
        points = encode(configuration.schema, self._asked)
        prepared = classifier_draw(configuration, points, row_count=rows.count)
        return draw_published(configuration, prepared, rows, self._noise)

    def _forget(self) -> None:
        """Let go of private state that nothing will read again."""
        phase = self.phase
        if phase is not Phase.ENSEMBLE:
            self._private_ensemble = None
            self._state = replace(self._state, private_threshold_noise=None)
        if phase is Phase.HALTED or self._classifier is not None:
            self._private_rows = None

    def __getstate__(self) -> NoReturn:
        """Refuse every copy, which would answer afresh on a budget that is spent."""
        raise TypeError(COPIED)


def _precision(configuration: Configuration) -> int | None:
    """Return the bins of a score; None where labels are answered."""
    answers = configuration.settings.answers
    return answers.precision if answers.output == "score" else None


def _shares(charges: Sequence[Charge]) -> list[dict[str, object]]:
    return [
        {
            "mechanism": charge.mechanism.value,
            "epsilon": float(charge.epsilon),
            "delta": float(charge.delta),
        }
        for charge in charges
    ]
