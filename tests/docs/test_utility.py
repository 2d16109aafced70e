"""The page of accuracy says what the kept results say, in each part that ran."""

from __future__ import annotations

import pytest

from benchmarks.utility.page import SECTIONS, begin, end, kept, page_of, section

PARTS = ("published", "online", "planning", "panel")


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_its_place(part: str) -> None:
    """The page has the marks of every part, once each and in their order."""
    page = page_of(part).read_text(encoding="utf-8")
    assert page.count(begin(part)) == page.count(end(part)) == 1
    assert page.index(begin(part)) < page.index(end(part))


@pytest.mark.parametrize("part", PARTS)
def test_a_section_is_what_the_results_print(part: str) -> None:
    """Between a part's marks is what its kept results print, and nothing where none are kept."""
    page = page_of(part).read_text(encoding="utf-8")
    printed = page.split(begin(part))[1].split(end(part))[0]
    document = kept(part)
    expected = section(part, document) if document is not None and part in SECTIONS else ""
    assert printed == expected
