"""Which element is where in tensors that are joined, and in one that is padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.bounds import minimum, positive_part
from ...ir.declaration.elements import Elements, Place, Source, number_element
from ...ir.dims import ZERO, Dim


def one_after_another(k: Elements, place: Place, tensors: tuple[Source, ...], dim: int) -> Any:
    """Return the element of `cat`: of the tensor whose part of the dim the place lies in."""
    dim %= len(place.index)
    starts = [ZERO]
    for tensor in tensors[:-1]:
        starts.append(starts[-1] + tensor.shape[dim])
    if len(tensors) == 1:
        return tensors[0](*place.index)
    here = k.number(place.index[dim])
    found: Any = k.const(0)
    for tensor, start in reversed(list(zip(tensors, starts, strict=True))):
        inside = k.lt(here, k.number(start + tensor.shape[dim]))
        if start != ZERO:
            inside = k.logical_and(k.ge(here, k.number(start)), inside)
        at = (*place.index[:dim], place.index[dim] - start, *place.index[dim + 1 :])
        found = tensor.within(at, inside, found)
    return found


def side_by_side(k: Elements, place: Place, tensors: tuple[Source, ...], dim: int) -> Any:
    """Return the element of `stack`: of the tensor with the number that the place has."""
    dim %= len(place.index)
    rest = (*place.index[:dim], *place.index[dim + 1 :])
    here = k.number(place.index[dim])
    found = tensors[-1](*rest)
    for number, tensor in reversed(list(enumerate(tensors[:-1]))):
        found = tensor.within(rest, k.eq(here, k.number(Dim.of(number))), found)
    return found


def padded(
    k: Elements, place: Place, x: Source, pad: Sequence[Any], mode: str, value: float | None
) -> Any:
    """Return the element of `pad`: the one that lies there, or that is copied there, or `value`."""
    if mode != "constant":
        return x(*_copied(place.index, x.shape, pad, mode))
    index, tests = list(place.index), list[Any]()
    for dim, before, after in _sides(len(index), pad):
        index[dim] = index[dim] - before
        if _may_lie_out(before):
            tests.append(k.ge(k.number(index[dim]), k.number(ZERO)))
        if _may_lie_out(after):
            tests.append(k.lt(k.number(index[dim]), k.number(x.shape[dim])))
    if not tests:
        return x(*index)
    inside = tests[0]
    for test in tests[1:]:
        inside = k.logical_and(inside, test)
    return x.within(index, inside, number_element(k, value or 0, x.dtype))


def _may_lie_out(amount: Any) -> bool:
    return isinstance(amount, Dim) or amount > 0


def folded(k: Elements, place: Place, g: Source, pad: Sequence[Any], mode: str) -> Any:
    """Return where the element of a padded tensor came from, and the element."""
    shape = list(place.shape)
    for dim, before, after in _sides(len(shape), pad):
        shape[dim] = shape[dim] - before - after
    return _copied(place.index, shape, pad, mode), g(*place.index)


def _sides(rank: int, pad: Sequence[Any]) -> list[tuple[int, Any, Any]]:
    """Return dims with what is added before and after them; pairs count from the last dim."""
    return [(rank - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]


def _copied(index: Sequence[Dim], shape: Sequence[Dim], pad: Sequence[Any], mode: str) -> list[Dim]:
    """Return where in a tensor of this shape the element is that lies at a place of the padded."""
    found = list(index)
    for dim, before, _ in _sides(len(index), pad):
        at, size = index[dim] - before, shape[dim]
        match mode:
            case "circular":
                found[dim] = at % size
            case "replicate":
                found[dim] = minimum(positive_part(at), size - 1)
            case _:
                inner = _away(at)
                found[dim] = size - 1 - _away(inner - (size - 1))
    return found


def _away(dim: Dim) -> Dim:
    """Return the distance from 0."""
    return positive_part(dim) + positive_part(-dim)
