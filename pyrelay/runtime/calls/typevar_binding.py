"""What the type parameters of a function stand for in one call: one type each, whatever it is.

Programs do not look into values of a type parameter, so nothing would fail while they run; but what
they give would not be of the type that they say.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final, final

import torch

from ...diagnostics.catalogue.call import TwoTypes
from ...diagnostics.diagnostic import RunError
from ...ir.types import FnType, Type, show
from ..values.value_types import TypesOfValues, joined

if TYPE_CHECKING:
    from .arguments import Place

_PLAIN: Final = (bool, int, float, str)


@final
class Agreement:
    """The types that type parameters stand for, as far as the values met tell them."""

    def __init__(self, function: str, types: TypesOfValues) -> None:
        self._function: Final = function
        self._types: Final = types
        self._known: Final[dict[str, tuple[Type, Place]]] = {}
        self._met: Final[dict[str, Hashable]] = {}

    def meet(self, name: str, place: Place, value: Any) -> None:
        """Take a value for a type parameter. Raises RunError if it has another type than those
        before."""
        look = _look(value)
        if look is not None and self._met.get(name) == look:
            return
        found = self._types.type(value)
        if name in self._known:
            before, where = self._known[name]
            both = joined(before, found)
            if both is None:
                raise RunError(self._mistake(name, (where, before), (place, found)))
            found, place = both, where
        self._known[name] = found, place
        self._met[name] = look

    def _mistake(
        self, name: str, first: tuple[Place, Type], second: tuple[Place, Type]
    ) -> TwoTypes:
        places = [(p.name, p.span, _words(ty)) for p, ty in (first, second)]
        return TwoTypes(self._function, name, places[0], places[1])


def _look(value: Any) -> Hashable:
    """Return what of a value without parts tells its type; None of another."""
    if type(value) in _PLAIN:
        return type(value)
    return (value.dtype, value.shape) if isinstance(value, torch.Tensor) else None


def _words(ty: Type) -> str:
    return "a function" if isinstance(ty, FnType) else show(ty)
