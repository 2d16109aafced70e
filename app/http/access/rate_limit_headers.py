"""The headers ``RateLimit-Policy`` and ``RateLimit``: a key's limits and remaining answers.

Their form is that of the IETF's draft "RateLimit header fields for HTTP". A limit applies to the
whole life of a release, so the policy has no time window and the remaining number never increases
again. One unit of a limit is one new answer, or one new unstable answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConclaveError

if TYPE_CHECKING:
    from app.answering.service_slot import ServiceSlot
    from app.http.access.access_control import Caller

Headers = list[tuple[bytes, bytes]]


def rate_limit_headers(slot: ServiceSlot, caller: Caller | None) -> Headers:
    """Return the two rate-limit headers for an API key with a limit; none for other callers.

    While no release is open, the header with the remaining numbers is left out.
    """
    if caller is None:
        return []
    answer_limit, unstable_limit = caller.found.limits
    if answer_limit is None and unstable_limit is None:
        return []
    limits = (("answers", answer_limit), ("unstable", unstable_limit))
    policies = [f'"{name}";q={limit}' for name, limit in limits if limit is not None]
    headers = [(b"ratelimit-policy", ", ".join(policies).encode())]
    try:
        count = slot.service.key_count(caller.found.asker.name)
    except ConclaveError:
        return headers
    left = [
        f'"{name}";r={max(0, limit - used)}'
        for (name, limit), used in zip(limits, count, strict=True)
        if limit is not None
    ]
    return [*headers, (b"ratelimit", ", ".join(left).encode())]
