"""The published classifier in its two formats for clients: JSON and ONNX."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from app.errors import NotPublishedError
from app.release.classifier.classifier_document import (
    read_document,
)

if TYPE_CHECKING:
    from app.release.release import Release


NOT_PUBLISHED: Final = "no classifier is published yet; ask again after the switch"


class PublishedForms:
    """The published classifier of a release in JSON and ONNX, as soon as it exists."""

    def __init__(self, release: Release) -> None:
        """Prepare the formats of the classifier that a server of ``release`` has published."""
        self._release = release
        self._model_of: tuple[bytes, bytes] | None = None
        self._building = asyncio.Lock()

    async def document(self) -> bytes:
        """Return the published classifier as JSON.

        Raises:
            NotPublishedError: no classifier is published yet.
            LedgerUnavailableError: the ledger cannot be read.

        """
        if self._release.classifier is not None:
            return self._release.classifier.json
        # Another process may have published since the last batch: `conclave learn` does.
        state = await asyncio.to_thread(self._release.ledger.read_state)
        if state.classifier is None:
            raise NotPublishedError(NOT_PUBLISHED)
        return state.classifier.classifier.encode()

    async def onnx(self) -> bytes:
        """Return the published classifier as an ONNX model.

        Raises:
            NotPublishedError: no classifier is published yet.
            NotExportableError: ONNX cannot express the classifier.
            LedgerUnavailableError: the ledger cannot be read.

        """
        document = await self.document()
        async with self._building:
            if self._model_of is None or self._model_of[0] != document:
                self._model_of = document, await asyncio.to_thread(onnx_model, document)
            return self._model_of[1]


def onnx_model(document: bytes) -> bytes:
    """Return a classifier document as an ONNX model."""
    from app.release.classifier.onnx.onnx_model import to_onnx  # noqa: PLC0415 -- as above

    return to_onnx(read_document(document))
