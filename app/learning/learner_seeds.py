"""Random seeds for models; the only module that makes numpy generators.

No privacy claim rests on a learner's randomness; it must only be the chunk's
own and the same after a restart.
"""

from __future__ import annotations

import hmac
from typing import TypeAlias

import numpy as np

# The name under which learners type what :func:`generator` gives them.
LearnerGenerator: TypeAlias = np.random.Generator

_DOMAIN = b"conclave learner seed"
_STUDENT_DOMAIN = b"conclave student seed"
_INDEX_BYTES = 8
_RANDOM_STATE_BYTES = 4


def chunk_seed(secret: bytes, chunk_index: int) -> bytes:
    """Return the random seed of one chunk: HMAC-SHA256 of its index under a secret."""
    return hmac.digest(secret, _DOMAIN + chunk_index.to_bytes(_INDEX_BYTES, "big"), "sha256")


def student_seed(release_id: str) -> bytes:
    """Return the public random seed of a student: HMAC-SHA256 of the release's random name."""
    return hmac.digest(_STUDENT_DOMAIN, release_id.encode(), "sha256")


def generator(seed: bytes) -> LearnerGenerator:
    """Return the numpy random generator of one model."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))


def seed_shared_generator(seed: bytes) -> None:
    """Seed numpy's global generator for one model, since some learners draw from it.

    Some estimators draw from it and take no seed, in fitting or in predicting; what
    one chunk's drew would otherwise move what the next one draws.
    """
    np.random.seed(random_state(seed))  # noqa: NPY002 -- the one that such estimators use


def random_state(seed: bytes) -> int:
    """Return a seed as the 32-bit integer that scikit-learn accepts."""
    return int.from_bytes(seed[:_RANDOM_STATE_BYTES], "big")
