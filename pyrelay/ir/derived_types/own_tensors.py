"""Data types that hold tensors of their own, which no type parameter shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ..types import AdtType, TensorType, Type, element_name, subtypes

if TYPE_CHECKING:
    from ..module import AdtDef, ConstructorDef

_LETTERS: Final = "TUVWXYZ"


def own_tensors(adts: Mapping[str, AdtDef], name: str) -> bool:
    """Return whether a data type holds tensors that its type parameters do not show, as those of
    which it is a batch do."""
    while (element := element_name(name)) is not None and element in adts:
        name = element
    return any(_fields(c) for definition in _inside(adts, name) for c in definition.constructors)


def with_type_parameters(adts: Mapping[str, AdtDef], name: str) -> str:
    """Return how to declare a data type, or the one inside it, so that its type shows its
    content."""
    for definition in _inside(adts, name):
        made = [_generic(c, _fields(c)) for c in definition.constructors if _fields(c)]
        if made:
            return f"make what it holds a type parameter: {', '.join(made)}"
    return "make what it holds a type parameter"


def _inside(adts: Mapping[str, AdtDef], name: str) -> Iterator[AdtDef]:
    """Return a data type and those inside it, from the outside in."""
    pending, seen = [name], {name}
    while pending:
        definition = adts.get(pending.pop(0))
        if definition is None:
            continue
        yield definition
        for part in (p for f in definition.fields for p in subtypes(f)):
            if isinstance(part, AdtType) and part.name not in seen:
                seen.add(part.name)
                pending.append(part.name)


def _fields(constructor: ConstructorDef) -> list[int]:
    """Return the places of the fields whose types have tensors in them."""
    return [i for i, f in enumerate(constructor.fields) if _has_tensors(f)]


def _has_tensors(ty: Type) -> bool:
    return any(isinstance(part, TensorType) for part in subtypes(ty))


def _generic(constructor: ConstructorDef, places: list[int]) -> str:
    """Return the declaration of a constructor with a type parameter for each of some fields."""
    names = constructor.field_names
    letters = [_LETTERS[n] if n < len(_LETTERS) else f"T{n}" for n in range(len(places))]
    base = f"`class {constructor.name}(Generic[{', '.join(letters)}])`"
    fields = [f"`{names[p]}: {t}`" for p, t in zip(places, letters, strict=True) if names]
    return f"{base} with {' and '.join(fields)}" if fields else base
