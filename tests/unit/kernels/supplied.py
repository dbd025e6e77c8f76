"""A supplier over tensors: what a reader gives must be what the evaluator gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from pyrelay.ir.dims import Dim, DimVar
from pyrelay.ir.expr import Constant, Expr, Function, Var, type_of
from pyrelay.ir.types import DType
from pyrelay.kernels.places import Places
from pyrelay.kernels.reading import Reader, bindings_of, dtype_of, results_of, shape_of
from pyrelay.lower_torch.constants import tensor_constant, torch_dtype
from pyrelay.lower_torch.elements import TorchElements
from pyrelay.lower_torch.scalars import tensor_of

CPU: Final = torch.device("cpu")


class Tensors:
    """Gives elements of tensors at all places at once; a coordinate is a tensor of integers."""

    def __init__(self, sizes: Mapping[str, int], leaves: Mapping[Expr, Any]) -> None:
        self.places: Final = Places()
        self.sizes: Final = dict(sizes)
        self.leaves: Final = leaves
        self.along: Final[dict[str, Any]] = {}

    def value(self, dim: Dim) -> Any:
        """Return what a dim is at all places."""
        return TorchElements(torch.float32, CPU, self._size).value(dim)

    def _size(self, dim: Dim) -> Any:
        atom = dim.single
        if isinstance(atom, DimVar) and atom.name in self.along:
            return self.along[atom.name]
        return dim.evaluate(self.sizes)

    def index(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """Return coordinates for all places of a shape."""
        found = self.places.index(f"i{len(self.along)}_", shape)
        for axis, (coordinate, size) in enumerate(zip(found, shape, strict=True)):
            spread = [-1 if d == axis else 1 for d in range(len(shape))]
            if coordinate.name is not None:
                extent = torch.arange(size.evaluate(self.sizes)).reshape(spread)
                self.along[coordinate.name] = extent
        return found

    def elements(self, dtype: DType, index: tuple[Dim, ...]) -> Any:
        """Return torch's arithmetic."""
        return Arithmetic(self, TorchElements(torch_dtype(dtype), CPU, self._size))

    def holds(self, var: Var) -> bool:
        """Return whether a variable is a leaf."""
        return var in self.leaves

    def read(
        self, var: Var | Constant, index: tuple[Dim, ...], mask: Any | None, otherwise: Any, /
    ) -> Any:
        """Return elements; one that is outside where the mask holds is refused."""
        whole = self.leaves[var] if isinstance(var, Var) else tensor_constant(var, CPU)
        places = [torch.as_tensor(self.value(i)) for i in index]
        holds = torch.tensor(True) if mask is None else torch.as_tensor(mask)
        for place, extent in zip(places, whole.shape, strict=True):
            assert not (((place < 0) | (place >= extent)) & holds).any(), "read outside"
        if not whole.numel():
            return tensor_of(0 if otherwise is None else otherwise, whole.dtype, CPU)
        found = whole[tuple(p.clamp(0, n - 1) for p, n in zip(places, whole.shape, strict=True))]
        if otherwise is None:
            # What is read where the mask does not hold must not matter.
            return found if mask is None else torch.where(holds, found, -found - 77)
        return torch.where(holds, found, tensor_of(otherwise, found.dtype, CPU))

    def computed(self, var: Var, index: tuple[Dim, ...], value: Any) -> Any:
        """Return the value as it is."""
        return value

    def checked(self, elements: Any, value: Any, mask: Any) -> Any:
        """Return the value as it is."""
        return value


class Arithmetic:
    """Torch's arithmetic with coordinates that all calls share."""

    def __init__(self, tensors: Tensors, elements: TorchElements) -> None:
        self._tensors: Final = tensors
        self._elements: Final = elements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._elements, name)

    def number(self, coordinate: Dim) -> Any:
        """Return the value of a coordinate."""
        return self._tensors.value(coordinate)

    def coordinate(self, value: Any, size: Dim, *, from_end: bool = True) -> Dim:
        """Return a value as a coordinate."""
        name = f"v{len(self._tensors.along)}"
        whole = torch.as_tensor(value)
        extent = self._tensors.value(size)
        is_behind = (whole < 0) & from_end
        self._tensors.along[name] = torch.where(is_behind, whole + extent, whole)
        return self._tensors.places.coordinate(name, size)


def read_results(function: Function, args: tuple[Any, ...], sizes: Mapping[str, int]) -> list[Any]:
    """Return all results of a function whose values are computed element by element."""
    found: list[Any] = []
    for result in results_of(function.body):
        supplier = Tensors(sizes, dict(zip(function.params, args, strict=True)))
        shape = shape_of(type_of(result))
        reader = Reader(bindings_of(function.body), supplier)
        value = reader.element(result, supplier.index(shape))
        dtype = torch_dtype(dtype_of(type_of(result)))
        whole = tensor_of(value, dtype, CPU).expand([d.evaluate(sizes) for d in shape])
        found.append(whole)
    return found
