"""A deliberately simple model of a ledger: lists, sets and two counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ledger.entries.entry_kinds import threshold_noise_name

if TYPE_CHECKING:
    from app.ledger.ledger import AnswerRow


class Model:
    """What the ledger must say, kept the plain way."""

    def __init__(self, *, queries: int | None, cutoff: int | None) -> None:
        """Start with an open release and nothing else."""
        self.queries = queries
        self.cutoff = cutoff
        self.charged: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.answers: list[tuple[bytes, int | None, bool]] = []
        self.keys: dict[bytes, bytes] = {}
        self.private: dict[str, bytes] = {}
        self.fitted = self.published = self.halted = self.tabled = False
        self.closed: str | None = None
        self.ended_epoch: int | None = None
        self.refreshed_at: int | None = None
        self.entry_count = 1

    @property
    def unstable(self) -> int:
        """The number of unstable answers."""
        return sum(not stable for _, _, stable in self.answers)

    def may_charge(self, mechanism: str, tenths: int) -> bool:
        """Whether a share may be spent: once, as it was set aside, within ten tenths."""
        if mechanism in self.charged or (mechanism == "statistics" and not self.may_open_table()):
            return False
        if mechanism in self.reserved:
            return tenths == self.reserved[mechanism]
        return self.tenths_taken() + tenths <= 10

    def may_reserve(self, mechanism: str, tenths: int) -> bool:
        """Whether a share may be set aside."""
        unknown = mechanism not in self.charged and mechanism not in self.reserved
        return unknown and self.tenths_taken() + tenths <= 10

    def may_open_table(self) -> bool:
        """Whether a statistics table may open: before the first answer, or after the last."""
        full = self.queries is not None and len(self.answers) >= self.queries
        cut = self.cutoff is not None and self.unstable >= self.cutoff
        is_last = "answers" in self.charged and (self.halted or full or cut)
        return not self.tabled and (not self.answers or is_last)

    def tenths_taken(self) -> int:
        """Tenths of epsilon that are spent or set aside."""
        return sum(self.charged.values()) + sum(self.reserved.values())

    def may_close(self, how: str) -> bool:
        """Whether a ledger may be closed: one that is open, or the copy of a retired one."""
        return self.closed is None or (how == "backup" and self.closed in {"moving", "retired"})

    def may_reopen(self, reason: str) -> bool:
        """Whether a closed ledger may go on: a backup as the newest, one with a code as moved."""
        return (self.closed, reason) in {("backup", "newest"), ("moving", "moved")}

    def may_teach(self) -> bool:
        """Whether a student may be published: beside no classifier, at one of the limits."""
        full = self.queries is not None and len(self.answers) == self.queries
        cut = self.cutoff is not None and self.unstable == self.cutoff
        return self.fitted and not self.published and (full or cut)

    def may_answer(self, outcomes: list[tuple[int | None, bool]]) -> bool:
        """Whether these answers may be given, one after another."""
        unstable = self.unstable
        if self.refreshed_at not in (None, unstable):
            return False
        for count, (_, stable) in enumerate(outcomes, start=len(self.answers) + 1):
            if self.cutoff is not None and unstable >= self.cutoff:
                return False
            if self.queries is not None and count > self.queries:
                return False
            unstable += not stable
        return self.fitted and not self.halted and bool(outcomes)

    def answer(self, rows: list[AnswerRow]) -> None:
        """Hold answers, and which epoch they ended."""
        unstable = self.unstable
        self.answers += [(row.vector, row.answer.label, row.answer.stable) for row in rows]
        self.ended_epoch = unstable if self.unstable > unstable else None

    def may_refresh(self, noise_after: int) -> bool:
        """Whether the threshold's noise may change: right after the hits that end an epoch."""
        ends = self.ended_epoch == (self.refreshed_at or 0)
        has_noise = threshold_noise_name(0) in self.private
        return ends and has_noise and noise_after == self.unstable
