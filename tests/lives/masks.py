"""What a repetition cannot have in common with a recording: the declared list, and no more.

A time of day, a duration, a rate, a port and a path of this run are each put out of the
bytes before they are kept; everything else is compared as it is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Final

NUMBER: Final = rb"-?\d+(?:\.\d+)?(?:e-?\d+)?"
JSON_NUMBERS: Final = rb"answers_per_second|checked_at|evaluation_seconds|opened_at|time"
MASKS: Final = (
    # Log lines: when they were written.
    (rb'"timestamp": ?"[^"]*"', b'"timestamp":"<time>"'),
    (rb"(?m)^\d{4}-\d\d-\d\dT[\d:.]+Z?", b"<time>"),
    # How long one answer takes on this machine, in logs and in plans.
    (rb"take about [\d.e+]+ m?s\b", b"take about <duration>"),
    (rb"padded [\d.e+]+ m?s\b", b"padded <duration>"),
    (rb'("answer_time": ?\{[^}]*?"seconds": ?)' + NUMBER, rb"\1<duration>"),
    (rb"(answer_time\.(?:evaluation_)?seconds) +\S+ +", rb"\1 <duration> "),
    # GET /budget/outlook: times of day and rates of this run.
    (rb'"(' + JSON_NUMBERS + rb')": ?' + NUMBER, rb'"\1":<time>'),
    (rb'"over_time": ?\{[^}]*\}', b'"over_time":<times>'),
    (rb',"seconds": ?' + NUMBER, b""),
    # GET /metrics: times of the process, and what is counted in buckets of time.
    (rb"(?m)^(conclave_start_time_seconds) .*$", rb"\1 <time>"),
    (rb"(?m)^(conclave_\w+_duration_seconds_(?:bucket|sum)\{?.*) \S+$", rb"\1 <duration>"),
    (rb"(?m)^(conclave_\w+_duration_seconds_sum) \S+$", rb"\1 <duration>"),
    # Which entry the head file noted last: it is written now and then.
    (rb"(?m)^conclave_ledger_head_file_sequence .*\n", b""),
    (rb"(?m)^(.*route=\"/budget\".*|.*path=\"/budget\".*) \S+$", rb"\1 <polls>"),
    # GET /ledger/storage: what is left of the disk, and the entry that the head file noted last.
    (rb'"bytes_free": ?\d+', b'"bytes_free":<bytes>'),
    # Which entry the head file noted last, or none yet: it is written after commits, by a thread.
    (rb'"noted_sequence": ?(?:\d+|null)', b'"noted_sequence":<sequence>'),
    # Addresses of this run.
    (rb"http://127\.0\.0\.1:\d+", b"http://<address>"),
)
# GET /budget/history: an hour of the clock may end in a run, or none may.
HOURS: Final = re.compile(rb'\{"hours": ?\[[^\]]*\]\}')
LENGTH: Final = re.compile(rb"content-length: \d+")
_COMPILED: Final = tuple((re.compile(pattern), text) for pattern, text in MASKS)


def _hours_added(found: re.Match[bytes]) -> bytes:
    """Return a history of requests as one row with the sums of its hours."""
    total: Counter[str] = Counter()
    for hour in json.loads(found[0])["hours"]:
        total.update({name: count for name, count in hour.items() if name != "time"})
    return json.dumps({"added_hours": dict(sorted(total.items()))}).encode()


def masked(said: bytes, own: dict[str, str]) -> bytes:
    """Return bytes without what is this run's alone.

    Args:
        said: as it came out.
        own: names for this run's paths and addresses, by what they are.

    """
    for text, name in own.items():
        said = said.replace(text.encode(), name.encode())
    said, histories = HOURS.subn(_hours_added, said)
    if histories:
        said = LENGTH.sub(b"content-length: <length>", said)
    for pattern, mask in _COMPILED:
        said = pattern.sub(mask, said)
    return said
