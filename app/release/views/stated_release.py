"""The facts of a privacy statement: configuration, ledger, noise parameters, audit report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from app.errors import ConfigurationError
from app.ledger.entries.fold import EMPTY
from app.release.opening import found_state
from app.release.terms.accounting import as_opened
from app.release.terms.answer_terms import (
    calibrate_answers,
    check_calibration,
    read_calibration,
    release_budget,
)
from app.release.terms.privacy_unit import opened_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from app.privacy.mechanism_registration import Calibration
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings


class Claimed(msgspec.Struct, frozen=True):
    """The privacy claim that an audit tested."""

    epsilon: float
    delta: float


class Found(msgspec.Struct, frozen=True):
    """The largest lower bound on epsilon that one kind of adversary reached in an audit."""

    epsilon: float | None
    share_of_claim: float | None


class AuditFound(msgspec.Struct, frozen=True):
    """The part of an audit report (``conclave audit --json``) that a statement shows."""

    holds: bool
    mechanism: str
    claim: Claimed
    exact: Found
    sampled: Found
    broken_conditions: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """The public contents of a privacy statement.

    Attributes:
        configuration: the release's public parameters.
        state: the state that the ledger entries determine; an empty state before the release is
            opened.
        openings: the first entries of all releases in the ledger.
        calibration: the noise parameters of the answers; None if answers have no share of epsilon.
        audit: the result of an audit; None if no report is given.
        version: the version of the program.

    """

    configuration: Configuration
    state: LedgerState
    openings: Sequence[ReleaseOpened]
    calibration: Calibration | None
    audit: AuditFound | None
    version: str

    @property
    def settings(self) -> Settings:
        """The whole configuration that the statement describes."""
        return self.configuration.settings

    @property
    def row_count(self) -> int | None:
        """The public number of rows, if known."""
        opened = self.state.release
        return self.settings.data.unit_count if opened is None else opened_count(opened)


def read_stated(
    configuration: Configuration, ledger: Ledger | None, *, audit: bytes | None, version: str
) -> Stated:
    """Return the contents of a privacy statement, after checking the answers' noise again.

    Args:
        configuration: the release's public parameters.
        ledger: the ledger, opened for reading; None if there is none yet.
        audit: the output of ``conclave audit --json``; None without a report.
        version: the version of the program.

    Raises:
        ConfigurationError: no noise parameters exist for the budget, or ``audit`` is not an audit
            report, or is one of another privacy claim.
        ReleaseMismatchError: the ledger's release was opened with other settings.
        LedgerCorruptError, InvariantError: the noise parameters in use do not satisfy the privacy
            claim.

    """
    settings, state = configuration.settings, EMPTY
    if ledger is not None:
        state = found_state(configuration, ledger)
        configuration = as_opened(configuration, state.release)
        settings = configuration.settings
    budget = release_budget(settings)
    if ledger is not None and state.ensemble is not None:
        calibration: Calibration | None = read_calibration(settings, ledger)
    else:
        calibration = calibrate_answers(settings, budget, state.release)
    if budget is not None and calibration is not None:
        check_calibration(settings, budget, calibration)
    return Stated(
        configuration=configuration,
        state=state,
        openings=() if ledger is None else ledger.openings,
        calibration=calibration,
        audit=None if audit is None else _found(audit, calibration),
        version=version,
    )


def _found(report: bytes, calibration: Calibration | None) -> AuditFound:
    """Read a report, and refuse one of another claim."""
    if calibration is None:
        raise ConfigurationError("--audit", "answers have no share here, and are not audited")
    try:
        found = msgspec.json.decode(report, type=AuditFound)
    except msgspec.DecodeError:
        raise ConfigurationError("--audit", "is no report of `conclave audit --json`") from None
    claim = Claimed(float(calibration.epsilon), float(calibration.delta))
    if found.claim != claim:
        problem = (
            f"is of epsilon {found.claim.epsilon:g} and delta {found.claim.delta:g}; the answers "
            f"here claim {claim.epsilon:g} and {claim.delta:g}: audit this configuration"
        )
        raise ConfigurationError("--audit", problem)
    return found
