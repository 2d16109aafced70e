"""The privacy accounting of a release's budget: added shares, or one joint account.

If ``privacy.accounting`` is not set, a new release uses the rule that its other settings determine,
and an open release uses the rule in its first ledger entry.

In a joint privacy account the cost of answers is computed together with the cost of drawing a
relabelling rule and a classifier. Without a joint account, the shares of epsilon are added up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from app.errors import ReleaseMismatchError
from app.ledger.entries.fold import ACCOUNTING, JOINT
from app.privacy.budget.account import Account, account_of
from app.release.terms.bound_settings import RESTORE
from app.release.terms.configuration import charges_by_mechanism

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings

SUM: Final = "sum"
KNOWN: Final[dict[str, Literal["joint", "sum"]]] = {"joint": "joint", "sum": "sum"}


def account(settings: Settings) -> Account | None:
    """Return the joint privacy account of answers and draws; None if shares are added up."""
    if settings.accounting != JOINT:
        return None
    charges, learner = charges_by_mechanism(settings), settings.classifier.learner
    has_draw = settings.privacy.shares.classifier > 0
    return account_of(charges.values(), learner=learner if has_draw else None)


def accounting_parameter(settings: Settings) -> dict[str, str]:
    """Return the first ledger entry's parameter for joint accounting; empty if shares are added."""
    return {ACCOUNTING: JOINT} if settings.accounting == JOINT else {}


def opened_accounting(opened: ReleaseOpened) -> Literal["joint", "sum"]:
    """Return the rule of privacy accounting of a release, from its first ledger entry.

    Raises:
        ReleaseMismatchError: the entry names a rule that this version does not know.

    """
    found = opened.parameters.get(ACCOUNTING, SUM)
    if found not in KNOWN:
        problem = f"the ledger's release has {found}, which this version does not know"
        raise ReleaseMismatchError(ACCOUNTING, problem)
    return KNOWN[found]


def as_opened(configuration: Configuration, opened: ReleaseOpened | None) -> Configuration:
    """Return the configuration, after adding the open release's accounting rule if it has none.

    Raises:
        ReleaseMismatchError: the release uses a rule that this version does not know.

    """
    settings = configuration.settings
    if opened is None or settings.privacy.accounting is not None:
        return configuration
    privacy = settings.privacy.model_copy(update={"accounting": opened_accounting(opened)})
    return replace(configuration, settings=settings.model_copy(update={"privacy": privacy}))


def check_accounting(settings: Settings, opened: ReleaseOpened) -> None:
    """Raise an error if a configured accounting rule differs from the open release's.

    Raises:
        ReleaseMismatchError: the release uses another rule, or one that this version does not know.

    """
    was, given = opened_accounting(opened), settings.privacy.accounting
    if given not in (None, was):
        problem = f"the ledger's release was opened with {was}, the configuration says {given}"
        raise ReleaseMismatchError(ACCOUNTING, f"{problem}; {RESTORE}")
