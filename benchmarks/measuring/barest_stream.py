"""The barest program that could answer a stream: what is left when everything is left out.

It parses the lines, casts the votes by one product with a comparison and a count, hashes each
vector under a key, and commits one blob a batch, durably.  It has no server, notices no vector
that was asked before, draws nothing, and could find no answer again by its vector.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

import numpy as np
from threadpoolctl import threadpool_limits

from app.answering.writer import BATCH_QUERIES_MAX
from app.data.vectors import encode_keys
from app.http.query.query_body import parse_lines_of_numbers
from benchmarks.measuring.linear_release import FEATURE_COUNT, MODEL_COUNT, SEED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.data.schema import Schema

KEY_BYTES: Final = 32


def barest_seconds(schema: Schema, lines: Sequence[bytes], database: Path) -> float:
    """Return the processor's seconds that the program takes.

    Args:
        schema: of the release that the lines are for.
        lines: bodies of new vectors.
        database: a file beside the release's ledger; made where there is none.

    """
    weights = np.random.default_rng(SEED).normal(size=(FEATURE_COUNT, MODEL_COUNT))
    key = os.urandom(KEY_BYTES)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS batches (answers BLOB)")
        with threadpool_limits(1):
            started = time.process_time()
            for begin in range(0, len(lines), BATCH_QUERIES_MAX):
                batch = lines[begin : begin + BATCH_QUERIES_MAX]
                answers = _answers(schema, batch, weights, key)
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO batches VALUES (?)", (answers,))
                connection.execute("COMMIT")
            return time.process_time() - started


def _answers(
    schema: Schema, lines: Sequence[bytes], weights: np.ndarray[tuple[int, int]], key: bytes
) -> bytes:
    """Return the digests of a batch and how many models vote for the second class on each."""
    queries = parse_lines_of_numbers(schema, lines)
    if queries is None:
        raise ValueError(lines[0].decode())
    votes = np.count_nonzero(encode_keys(schema, queries.vectors) @ weights > 0, axis=1)
    digests = [
        hashlib.blake2b(vector, key=key, digest_size=KEY_BYTES).digest()
        for vector in queries.vectors
    ]
    return b"".join([*digests, votes.astype(np.int16)])
