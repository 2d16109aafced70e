"""A fast path for JSON inference requests of one row, whose headers were seen before.

The fast path avoids the web framework; the functions of the ordinary route parse the request and
make the reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from app.answering.queries import Query, alone
from app.http.protocols.v2 import inference_document, service_of_model
from app.http.protocols.v2_body import Inference, parse_inference
from app.http.query.fast_query import PlainQueries
from app.http.route_handling import INFER

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from app.answering.answers import Answer
    from app.answering.queries import Asker, Queries
    from app.answering.service import ConclaveService
    from app.http.query.fast_query import Admitted, Asked

ResultT = TypeVar("ResultT")


class PlainInferences(PlainQueries):
    """The fast path, without the web framework, for requests of one row to ``.../infer``."""

    def is_path(self, path: str) -> bool:
        """Return whether a path has the form ``/v2/models/NAME/infer`` of an inference request."""
        return INFER.fullmatch(path) is not None

    def parse(
        self, service: ConclaveService, admitted: Admitted, body: bytes, asker: Asker | None
    ) -> tuple[Queries, object] | None:
        """Return the single query in a body with the parsed request; None for other requests.

        Raises:
            RequestError: the request is refused, as by the ordinary route.

        """
        found = INFER.fullmatch(admitted.path)
        service_of_model(self._api, "" if found is None else found[1])
        rows_max = self._api.limits.batch_rows_max
        asked = _at_once(parse_inference(service.schema, body, len(body), rows_max=rows_max))
        if asked is None or len(asked.vectors) != 1 or any(binary for _, binary in asked.outputs):
            return None
        return alone(Query(asked.vectors[0], asker=asker)), asked

    def document(self, asked: Asked, answer: Answer) -> bytes:
        """Return the requested outputs as JSON."""
        form = asked.form
        if not isinstance(form, Inference):
            raise TypeError("an inference keeps what it asked for")
        return inference_document(asked.service.release_name, form, [answer])


def _at_once(parsing: Coroutine[Any, Any, ResultT]) -> ResultT | None:
    """Return the result of a coroutine that does not wait; None of one that does."""
    try:
        parsing.send(None)
    except StopIteration as ended:
        result: ResultT = ended.value
        return result
    parsing.close()
    return None
