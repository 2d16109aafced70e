"""Random seeds for models; the only module of ``app/learning/`` that makes numpy generators.

No privacy claim depends on the randomness of a learner. The seed of a learner only has to be
different for every chunk and the same after a restart.

A student classifier is trained on queries and their released labels, which are public.
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
    """Return the random seed of one chunk: HMAC-SHA256 of its index with the secret as key."""
    return hmac.digest(secret, _DOMAIN + chunk_index.to_bytes(_INDEX_BYTES, "big"), "sha256")


def student_seed(release_id: str) -> bytes:
    """Return the public random seed of a student classifier, a keyed hash of the release's id.

    The hash is HMAC-SHA256 with a constant public key.
    """
    return hmac.digest(_STUDENT_DOMAIN, release_id.encode(), "sha256")


def generator(seed: bytes) -> LearnerGenerator:
    """Return numpy's random generator for one model, started from the model's seed."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))


def seed_shared_generator(seed: bytes) -> None:
    """Seed numpy's global random generator before one model is trained or used.

    Some scikit-learn estimators draw from the global generator and accept no seed. Without this
    call, the draws of one chunk's model would change the draws of the next one.
    """
    np.random.seed(random_state(seed))  # noqa: NPY002 -- the one that such estimators use


def random_state(seed: bytes) -> int:
    """Return the first 32 bits of a seed as an integer, for scikit-learn's ``random_state``."""
    return int.from_bytes(seed[:_RANDOM_STATE_BYTES], "big")
