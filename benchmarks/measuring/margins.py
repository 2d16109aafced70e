"""A release whose every margin of votes can be asked for, by data and models alone.

The label is "yes" from the middle of a line on, with noise.  Each of k chunks has its
own few rows, and so its own cut of the line: far out all models agree, in the middle
they are split, and somewhere in between is any margin.  A second feature, which no
model looks at, makes every vector a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.vectors import encode
from app.privacy.budget.ensemble_size import tested
from app.privacy.noisy_vote.calibration import VoteCalibration
from app.privacy.stability import hit_table as profile
from app.privacy.voting.votes import tally
from app.release.terms.answer_terms import calibrate_answers, release_budget
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from app.data.vectors import Vector
    from app.privacy.voting.votes import Tally
    from app.release.release import Release
    from app.settings.settings import Settings

EPSILON: Final = Fraction(1000)  # the largest there is: hits take few votes then
DELTA: Final = Fraction(1, 2)
CHUNK_ROWS: Final = 12
NOISE_DEVIATION: Final = 8
CUT_COUNT: Final = 1000
MARGINS_SEED: Final = 7
# At most so probable an outcome counts as one that does not happen.
RARE: Final = 1e-7
# Of votes that are split less evenly a query is unstable at least so often.
LIKELY: Final = 0.8

TEMPLATE = """\
[release]
name = "margins"

[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
# A feature that is the same in every row is there to be measured, not to be learned from.
dead_features = "allow"

[[data.features]]
name = "place"
kind = "numeric"
bounds = [0, 100]
thresholds = [{cuts}]
threshold_shares = [{shares}]

[[data.features]]
name = "number"
kind = "numeric"
bounds = [0, 1]
thresholds = [0.5]

[hypotheses]
class = "trees"
depth = 1

[privacy]
epsilon = {epsilon}
delta = {delta}

[privacy.shares]
relabel = 0
answers = 1
classifier = 0

[answers]
queries = 1000000
cutoff = {cutoff}
ensemble = {size}
after = "halt"

[server]
port = 0
"""


class Kind(StrEnum):
    """What the votes on a query are like."""

    SPLIT_NO = "split, no ahead"
    SPLIT_YES = "split, yes ahead"
    NEAR = "split less evenly"
    CLEAR = "barely clear"
    UNANIMOUS_NO = "unanimous no"
    UNANIMOUS_YES = "unanimous yes"


UNSTABLE: Final = (Kind.SPLIT_NO, Kind.SPLIT_YES, Kind.NEAR)
STABLE: Final = (Kind.CLEAR, Kind.UNANIMOUS_NO, Kind.UNANIMOUS_YES)


@dataclass(frozen=True, slots=True)
class Margins:
    """Where on the line the votes are of each kind, and their distances to instability.

    Attributes:
        places: the first feature of a query of each kind.
        distances: of its votes, which a benchmark on synthetic rows may print.

    """

    places: Mapping[Kind, float]
    distances: Mapping[Kind, int]

    def vector(self, kind: Kind, number: int) -> Vector:
        """Return the ``number``-th vector of a kind, below nine million."""
        return (self.places[kind], numbered(number))


@dataclass(frozen=True, slots=True)
class MarginsRelease:
    """A folder with the rows and the configuration.

    Attributes:
        folder: where they are, and the ledger.
        size: k.
        cutoff: T.
        changes: environment variables that beat the configuration.

    """

    folder: Path
    size: int = 300
    cutoff: int = 1000
    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "conclave.toml"

    def write(self) -> Settings:
        """Write rows and configuration; return the settings."""
        generator = np.random.default_rng(MARGINS_SEED)
        places = 100 * generator.random(CHUNK_ROWS * self.size)
        is_yes = places + generator.normal(0, NOISE_DEVIATION, len(places)) >= 50
        lines = [
            f"{place:.6f},0,{'yes' if yes else 'no'}"
            for place, yes in zip(places.tolist(), is_yes.tolist(), strict=True)
        ]
        text = "\n".join(["place,number,answer", *lines])
        (self.folder / "rows.csv").write_text(text + "\n", encoding="utf-8")
        self.config.write_text(self._text(), encoding="utf-8")
        return self.settings()

    def settings(self) -> Settings:
        """Return the settings as a server reads them."""
        return load_settings(self.config, dict(self.changes))

    def _text(self) -> str:
        cuts = line_cuts()
        # Cuts of equal shares tie, and ties go to the first: the cut of a chunk is then
        # the first that its own rows allow, and differs from chunk to chunk.
        return TEMPLATE.format(
            cuts=", ".join(map(str, cuts)),
            shares=", ".join("0.5" for _ in cuts),
            epsilon=float(EPSILON),
            delta=float(DELTA),
            cutoff=self.cutoff,
            size=self.size,
        )


def votes_needed(cutoff: int) -> int:
    """Return a k with which unanimous votes are well clear of a table's end."""
    table = profile.calibrate(epsilon=EPSILON, delta=DELTA, cutoff=cutoff)
    return 4 * table.distance_at(RARE)


def line_cuts() -> list[float]:
    """Return the cuts, in the middle half of the line."""
    return [float(cut) for cut in np.round(np.linspace(25, 75, CUT_COUNT + 2)[1:-1], 3)]


def numbered(number: int) -> float:
    """Return a number in (0.1, 1) whose text has ten characters, and no other's."""
    return float(f"0.{1_000_000 + number}7")


def find_margins(release: Release) -> Margins:
    """Look at the votes, as no client can, and choose a place of each kind.

    Places have five characters, and the last is no zero, so that all vectors are of one
    length.
    """
    places = [place / 100 for place in range(2001, 8000) if place % 10]
    values = encode(release.schema, [(place, 0.25) for place in places])
    ensemble = release.private_ensemble
    if ensemble is None:
        message = "the release has an ensemble"
        raise ValueError(message)
    found = list(zip(places, tally(ensemble.vote_counts(values)), strict=True))
    chosen = _choose(found, release)
    return Margins(
        places={kind: place for kind, (place, _) in chosen.items()},
        distances={kind: private.distance for kind, (_, private) in chosen.items()},
    )


def _choose(
    found: Iterable[tuple[float, Tally]], release: Release
) -> dict[Kind, tuple[float, Tally]]:
    by_distance = sorted(found, key=lambda item: item[1].distance)
    noes = [item for item in by_distance if item[1].plurality == 0]
    yeses = [item for item in by_distance if item[1].plurality == 1]
    near, clear = _ends(release)
    return {
        Kind.SPLIT_NO: noes[0],
        Kind.SPLIT_YES: yeses[0],
        Kind.NEAR: [item for item in noes if item[1].distance <= near][-1],
        Kind.CLEAR: next(item for item in noes if item[1].distance >= clear),
        Kind.UNANIMOUS_NO: noes[-1],
        Kind.UNANIMOUS_YES: yeses[-1],
    }


def _ends(release: Release) -> tuple[int, int]:
    """Return the last distance that mostly hits, and the first that never does."""
    settings = release.configuration.settings
    calibration = calibrate_answers(settings, release_budget(settings))
    if calibration is None or isinstance(calibration, VoteCalibration):
        # Nothing hits: a lead that noise often makes up for, and one that it does not.
        lead = 0 if calibration is None else calibration.lead_at(RARE)
        return lead // 8, lead // 2 + 1
    test = tested(calibration)
    distances = range(test.distance_at(RARE) + 1)
    near = max(d for d in distances if test.hit_probability(d) >= LIKELY)
    return near, distances[-1]
