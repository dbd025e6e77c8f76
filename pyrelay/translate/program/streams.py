"""Python iterables that a program reads: parameters annotated `Iterable[...]`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...diagnostics.catalogue.signatures import UnreadableAnnotation
from ...diagnostics.source import Span
from ...ir.types import AdtType, Type, subtypes
from ...operators.host.stream import STREAM_DATA, describe_element
from ...prelude.library import library
from .program import SourceProgram


def stream_of(
    program: SourceProgram, element: Type, known: Collection[str], span: Span
) -> tuple[Any, ...]:
    """Return the description of what an iterable gives; elements that cannot be are reported.

    `known` names the sizes that other parameters show, with which every element must agree. The
    other sizes are those of one element.
    """
    program.adts.update(STREAM_DATA)
    named = (t.name for t in subtypes(element) if isinstance(t, AdtType))
    # The description is no type, so linking does not see what it mentions.
    program.adts.update({n: library().adts[n] for n in named if n in library().adts})
    try:
        return describe_element(element, known)
    except ValueError as error:
        way = "write tensors, numbers and data, and tuples of them, and give each size a name"
        written = span.text.partition(":")[2].strip()
        place = Span(span.file, span.end - len(written), span.end)
        program.report(UnreadableAnnotation(place, written, str(error), way))
        program.guesses = True
        return ("tuple", ())
