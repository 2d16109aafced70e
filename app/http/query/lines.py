"""Cutting a stream of bytes into lines of bounded length."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Overlong:
    """Stands in the place of a line that was longer than the limit; its bytes are gone."""

    def __len__(self) -> int:
        """Return the bytes that it takes, as good as none."""
        return 1


OVERLONG = Overlong()
Line = bytes | Overlong


class LineCutter:
    """Feeds on chunks, gives whole lines; lines of white space only are left out."""

    def __init__(self, *, line_bytes_max: int) -> None:
        """Start at the beginning of a line."""
        self._line_bytes_max = line_bytes_max
        self._rest = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the lines that ``chunk`` completes."""
        first, *others = chunk.split(b"\n")
        self._append(first)
        if not others:
            return []
        lines = self._end_line()
        rest = others.pop()
        limit = self._line_bytes_max  # each of the others is a whole line
        lines += [
            line for piece in others if (line := piece.strip() if len(piece) <= limit else OVERLONG)
        ]
        self._append(rest)
        return lines

    def finish(self) -> list[Line]:
        """Return the last line where no newline ended it."""
        return self._end_line()

    def _append(self, piece: bytes) -> None:
        if self._skipping or len(self._rest) + len(piece) > self._line_bytes_max:
            self._skipping = True
            self._rest.clear()
        else:
            self._rest += piece

    def _end_line(self) -> list[Line]:
        line: Line = OVERLONG if self._skipping else bytes(self._rest).strip()
        self._skipping = False
        self._rest.clear()
        return [line] if line else []
