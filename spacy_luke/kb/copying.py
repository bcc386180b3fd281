"""What a knowledge base, or its later segments, has, as a source of a new segment."""

from collections.abc import Container
from math import fsum

from .knowledge_base import EntityKB
from .segment import Segment
from .staging import SourceGroup, Staging

_TITLE = "the knowledge base"
_LEAST = 1e-5  # shares that float32 may lose


class Copier:
    """Stages segments. Made before the sources that are staged with them."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._counted = staging.add_group(SourceGroup(_TITLE, "count", unknown="add"))
        self._merged = staging.add_group(SourceGroup(_TITLE, "merged", unknown="add"))

    def copy(self, kb: EntityKB, *, first: int = 0, without: Container[int] = ()) -> None:
        """first: segment; without: rows of entities that are left out, with their names."""
        source = self._staging.add_source(_TITLE)
        for segment in kb.segments[first:]:
            self._copy_entities(kb, segment, source, without)
            for title, row in segment.redirects():
                if row not in self._staging.removed:  # what is replaced keeps the ids that lead to it
                    self._staging.add_redirect(title, kb.name_of(row))
            for name in segment.store:
                self._copy_name(kb, segment, name, without)

    def _copy_entities(self, kb: EntityKB, segment: Segment, source: int, without: Container[int]) -> None:
        for row in range(segment.base, segment.base + segment.entities):
            if row in without:
                continue
            number = segment.number_of_row(row)
            self._staging.copy_entity(
                kb.name_of(row), source=source, line=row, text=segment.description(number),
                count=segment.count(number), person=segment.is_person(number), about=segment.about(number),
            )  # fmt: skip

    def _copy_name(self, kb: EntityKB, segment: Segment, name: str, without: Container[int]) -> None:
        number = segment.store.number_of_key(name)
        assert number is not None, name
        total, found = segment.total(number), segment.candidates(number)
        kept = [(row, prior) for row, prior in found if row not in without]
        for row, prior in kept:
            group, weight = (self._counted, prior * total) if total else (self._merged, prior)
            self._staging.add_key(name, kb.name_of(row), group=group, weight=weight)
        rest = 1 - fsum(
            prior for _, prior in found
        )  # of candidates that the limits left out; below 0 where several lists gave counts, before these were one
        if total and kept and abs(rest) > _LEAST:
            self._staging.add_rest(name, group=self._counted, weight=rest * total)
