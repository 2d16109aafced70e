"""Training of a student (a model trained on released answers), and its publication.

The student is trained on queries and their released labels only. No private row, vote or model is
read, and no share of the budget is charged. After a crash before the publication, the same student
is trained again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from app.data.vectors import decode_key, encode
from app.errors import LedgerCorruptError
from app.learning.learner_seeds import student_seed
from app.learning.student import ConstantStudent, EstimatorStudent, fit_student
from app.ledger.entries.entry_kinds import StudentPublished
from app.privacy.voting.knowledge_transfer import training_set
from app.release.charged_draw import Publication
from app.release.classifier.classifier_document import NodeDocument, StudentDocument
from app.release.classifier.published_classifier import (
    STUDENT,
    TrainedStudent,
    publish_drawn,
    published_document,
)
from app.release.classifier.published_predictor import PublishedStudent
from app.release.classifier.written_hypotheses import Written
from app.release.private_state import put_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Schema
    from app.learning.student import Student
    from app.ledger.database.recorded_answers import AnswerRow
    from app.ledger.ledger import Transaction
    from app.privacy.voting.knowledge_transfer import TrainingSet
    from app.release.release import Release
    from app.release.terms.configuration import Configuration

log = structlog.get_logger("conclave.service")


def publish_student(release: Release) -> None:
    """Train and publish the student model; called on the thread that writes the ledger.

    Raises:
        LedgerUnavailableError: the ledger refused the commit; nothing was published.
        LedgerCorruptError: an answer is missing from the ledger.

    """

    def append(transaction: Transaction, trained: TrainedStudent) -> None:
        digests = put_pieces(transaction, trained.pieces)
        document = trained.classifier.json.decode()
        transaction.append(StudentPublished(classifier=document, private_digests=digests))

    Publication(
        ledger=release.ledger,
        is_published=lambda state: state.classifier is not None,
        append=append,
        # Trained once: what an operator's estimator gives may differ from run to run.
        keep=release.keep_student,
        adopt=release.adopt,
    ).draw_once(lambda: release.trained_student or train_student(release))


def train_student(release: Release) -> TrainedStudent:
    """Return a student model trained on every recorded answer."""
    opened, state = release.state.release, release.state
    answers = list(release.ledger.asked_vectors())
    if opened is None or len({row.answer.query_id for row in answers}) != state.answered:
        raise LedgerCorruptError("an answer is missing from the answers table")
    return taught(release.configuration, answers, seed=student_seed(opened.release_id))


def taught(
    configuration: Configuration, answers: Sequence[AnswerRow], *, seed: bytes
) -> TrainedStudent:
    """Return a student model trained on the given answers, which are all released.

    Args:
        configuration: the release's public parameters.
        answers: the recorded answers with their query vectors, in the order of the answers.
        seed: the public seed for an estimator's random choices.

    """
    learner, schema = configuration.student, configuration.schema
    examples = _examples(schema, answers)
    student = fit_student(learner, examples.values, examples.labels, seed=seed)
    failure = student.failure if isinstance(student, ConstantStudent) else None
    document = StudentDocument(
        labelled_queries=len(examples.labels),
        rule=None if learner.estimator else learner.rule,
        estimator=learner.estimator,
        params=dict(learner.params) if learner.estimator else None,
        failed=failure is not None,
    )
    if failure is not None:
        log.warning("student_constant", error=failure, count=len(examples.labels))
    return _written(configuration, student, document)


def _examples(schema: Schema, rows: Sequence[AnswerRow]) -> TrainingSet:
    """Return what is learned from: stable answers; a coin's label teaches nothing."""
    values = encode(schema, [decode_key(row.vector) for row in rows])
    answers = [row.answer for row in rows]
    return training_set(values, [answer.label if answer.stable else None for answer in answers])


def _written(
    configuration: Configuration, student: Student, document: StudentDocument
) -> TrainedStudent:
    """Write what was trained as a document, and an estimator as a piece beside it."""
    name, schema = configuration.name, configuration.schema
    if isinstance(student, ConstantStudent):
        constant = Written(tree=NodeDocument(label=schema.classes[student.label]))
        return TrainedStudent(published_document(name, schema, document, constant))
    if isinstance(student, EstimatorStudent):
        described = structs.replace(document, otherwise=schema.classes[student.fallback])
        published = published_document(name, schema, described)
        fitted = replace(published, student=PublishedStudent(schema, student))
        return TrainedStudent(fitted, {STUDENT: student.to_bytes()})
    return TrainedStudent(
        publish_drawn(
            release=name,
            schema=schema,
            hypotheses=configuration.hypotheses,
            drawn=student,
            student=document,
        )
    )
