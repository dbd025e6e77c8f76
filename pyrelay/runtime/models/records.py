"""Records of tensors by parameter name: the parameters of a model, and their gradients.

Both are immutable mappings keyed like `state_dict`, with arithmetic on all tensors at once. The
compiled program's nested tuple is kept as it came; names are attached only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Self, TypeAlias, TypeGuard, final

import optree
import torch

from ...dataclass import dataclass
from ...diagnostics.catalogue.model import NoSuchParameter
from ...diagnostics.diagnostic import RunError
from ...diagnostics.misspelt import nearest
from ...diagnostics.wording import counted
from ..border.autograd import unrecorded
from ..values import pytrees
from ..values.structure import tensors
from .model_layout import Home

Tree: TypeAlias = Any
"""A host value: a tensor, a number, or tuples and data of these."""

_lists: Final[Any] = torch
"""Where the functions on lists of tensors are, `_foreach_add` and its kind."""


class TensorRecord(Mapping[str, torch.Tensor]):
    """Tensors by name, in the order of the program."""

    home: Home
    _tree: Tree

    def __init__(self, home: Home, tree: Tree) -> None:
        self.home = home
        self._tree = tree

    @property
    def tree(self) -> Tree:
        """The tensors as nested tuples."""
        return self._tree

    @property
    def _names(self) -> tuple[str, ...]:
        return self.home.blueprint.param_names

    def __getitem__(self, name: str) -> torch.Tensor:
        """Return the tensor of a parameter. Raises RunError with the nearest name."""
        if name not in self._names:
            near = nearest(name, self._names)
            raise RunError(NoSuchParameter(self.home.blueprint.name, name, near))
        return tensors(self.tree)[self._names.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{n}: {tuple(t.shape)}" for n, t in self.items())
        return f"{type(self).__name__}({shapes})"

    def items(self) -> Any:
        """Return the names and tensors, all at once."""
        return self._by_name.items()

    def values(self) -> Any:
        """Return the tensors, all at once."""
        return self._by_name.values()

    @property
    def _by_name(self) -> dict[str, torch.Tensor]:
        return dict(zip(self._names, tensors(self.tree), strict=True))

    def map(self, function: Callable[..., torch.Tensor], *others: TensorRecord) -> Self:
        """Return the record of `function` applied to each tensor, with those of `others` beside."""
        columns = [tensors(self.tree), *(tensors(o.tree) for o in others)]
        found = unrecorded(lambda: [function(*row) for row in zip(*columns, strict=True)])
        return type(self)(self.home, self.home.blueprint.params_tree(found))

    def __add__(self, other: TensorRecord | float) -> Self:
        return self._binary(torch.add, other)

    __radd__ = __add__

    def __sub__(self, other: TensorRecord | float) -> Self:
        return self._binary(torch.sub, other)

    def __rsub__(self, other: float) -> Self:
        return self.map(lambda t: other - t)

    def __mul__(self, other: TensorRecord | float) -> Self:
        return self._binary(torch.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: TensorRecord | float) -> Self:
        return self._binary(torch.div, other)

    def __rtruediv__(self, other: float) -> Self:
        return self.map(lambda t: other / t)

    def __neg__(self) -> Self:
        return self.map(torch.neg)

    def _binary(self, function: Callable[..., torch.Tensor], other: TensorRecord | float) -> Self:
        if isinstance(other, TensorRecord):
            return self.map(function, other)
        return self.map(lambda t: function(t, other))

    def norm(self) -> torch.Tensor:
        """Return the Euclidean norm of all tensors together, a 0-d tensor."""
        return unrecorded(_norm, tensors(self.tree))


@final
class Params(TensorRecord):
    """The parameters of a model, as a value."""

    @property
    def shapes(self) -> Sequence[torch.Size]:
        """Their shapes, in the order of the program."""
        return [t.shape for t in tensors(self.tree)]

    def descended(self, grads: Any, lr: Any) -> Params:
        """Return the parameters after a step of plain descent, which leaves the frozen ones."""
        if not _is_rate(lr) or not isinstance(grads, Grads) or self._belongs_elsewhere(grads):
            moved = self - grads * lr
            return self._with_frozen(tensors(moved.tree)) if self.home.frozen else moved
        return self._with_frozen(unrecorded(_descended, tensors(self.tree), grads.parts, lr))

    def _belongs_elsewhere(self, grads: Grads) -> bool:
        """Return whether a gradient is that of a model of another tree."""
        return grads.home.blueprint is not self.home.blueprint

    def _with_frozen(self, values: list[torch.Tensor]) -> Params:
        """Return a record of new values, but for the frozen parameters."""
        frozen = self.home.frozen
        if frozen:
            rows = zip(self._names, tensors(self.tree), values, strict=True)
            values = [old if name in frozen else new for name, old, new in rows]
        return Params(self.home, self.home.blueprint.params_tree(values))


def _norm(found: Sequence[torch.Tensor]) -> torch.Tensor:
    norms = [torch.linalg.vector_norm(t) for t in found]
    return torch.linalg.vector_norm(torch.stack(norms)) if norms else torch.tensor(0.0)


def _descended(
    params: Sequence[torch.Tensor], parts: Sequence[Part], lr: float
) -> list[torch.Tensor]:
    """Return parameters after a step of descent, those with whole gradients moved at once."""
    whole = [place for place, part in enumerate(parts) if not isinstance(part, tuple)]
    pairs = [params[i] for i in whole], [parts[i] for i in whole]
    added: Any = _lists._foreach_add(*pairs, alpha=-lr) if whole else ()  # noqa: SLF001
    places = dict(zip(whole, added, strict=True))
    return [
        places[i] if i in places else _descended_by(params[i], part, lr)
        for i, part in enumerate(parts)
    ]


def _descended_by(param: torch.Tensor, part: Any, lr: float) -> torch.Tensor:
    if not are_rows(part):
        return torch.addmm(param, *part, alpha=-lr)
    numbers = part[1].reshape(-1)
    rows = part[0].reshape(len(numbers), *param.shape[1:])
    return torch.index_add(param, 0, numbers.to(torch.int64), rows, alpha=-lr)


def _is_rate(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


Part: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
"""A tensor, or two matrices whose product it is, or rows that are not zero with their numbers."""


def are_rows(part: Part) -> bool:
    """Return whether a part of a gradient is rows with their numbers."""
    return isinstance(part, tuple) and not part[1].is_floating_point()


def summed(part: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows with their numbers, each number once."""
    rows, numbers = part
    found, places = torch.unique(numbers.reshape(-1), return_inverse=True)
    row = rows.shape[numbers.dim() :]
    total = rows.new_zeros((len(found), *row))
    return total.index_add_(0, places, rows.reshape(len(places), *row)), found.to(torch.int64)


@final
class Grads(TensorRecord):
    """The gradient of a model's parameters. Products of matrices, and tables of which few rows are
    not zero, are made when they are asked for; an update works with the parts instead, and so do
    arithmetic with numbers and `norm` with rows."""

    def __init__(
        self,
        home: Home,
        tree: Tree,
        parts: Sequence[Part] | None = None,
        shapes: Sequence[torch.Size] = (),
    ) -> None:
        """`parts` are the leaves of the tree, which may be pairs there; `shapes` are those of the
        parameters."""
        self.home = home  # written out: a step of a script makes one
        self._tree = tree
        self._parts = parts
        self._shapes: Final = shapes

    @property
    def parts(self) -> Sequence[Part]:
        """The gradients in the order of the parameters, as far as they are made."""
        if self._parts is None:
            self._parts = tensors(self._tree)
        return self._parts

    @property
    def steps(self) -> Sequence[Part]:
        """The gradients in the order of the parameters, rows as they are, products made."""
        if not self._has_rows:
            return tensors(self.tree)
        rows = zip(self.parts, self._shapes, strict=True)
        return [part if are_rows(part) else whole(part, shape) for part, shape in rows]

    @property
    def tree(self) -> Tree:
        """The tensors as nested tuples."""
        if self._tree is None or any(isinstance(part, tuple) for part in self.parts):
            # From here on these are the gradient: a script may write to them.
            self._parts = list(map(whole, self.parts, self._shapes))
            self._tree = self.home.blueprint.params_tree(self._parts)
        return self._tree

    def __repr__(self) -> str:
        shapes = self._shapes or [t.shape for t in tensors(self.tree)]
        rows = zip(self._names, self.parts, shapes, strict=True)
        fields = ", ".join(f"{name}: {_shape(part, shape)}" for name, part, shape in rows)
        return f"Grads({fields})"

    def _binary(self, function: Callable[..., torch.Tensor], other: TensorRecord | float) -> Self:
        if function in (torch.add, torch.sub) and self._may_add(other):
            return self._added(-other if function is torch.sub else other)
        if function is torch.add and isinstance(other, int) and other == 0:
            return self  # `sum` of gradients begins with it
        is_scaling = function in (torch.mul, torch.div) and not isinstance(other, TensorRecord)
        if not is_scaling or not self._has_rows:
            return super()._binary(function, other)

        def scaled(part: Part) -> Part:
            if isinstance(part, tuple):
                return function(part[0], other), part[1]
            return function(part, other)

        parts = unrecorded(lambda: list(map(scaled, self.steps)))
        return type(self)(self.home, None, parts, self._shapes)

    def _may_add(self, other: TensorRecord | float) -> TypeGuard[Grads]:
        """Return whether another gradient of the same parameters has rows too."""
        if not isinstance(other, Grads) or other.home.blueprint is not self.home.blueprint:
            return False
        return self._has_rows and any(map(are_rows, other.parts))

    def __neg__(self) -> Self:
        return self * -1.0

    def _added(self, other: Grads) -> Self:
        """Return the sum with another gradient, of rows where both have few."""

        def both() -> list[Part]:
            return list(map(_sum, self.steps, other.steps, self._shapes))

        return type(self)(self.home, None, unrecorded(both), self._shapes)

    def norm(self) -> torch.Tensor:
        """Return the Euclidean norm of all tensors together, a 0-d tensor."""
        if not self._has_rows:
            return super().norm()
        return unrecorded(
            lambda: _norm([summed(p)[0] if isinstance(p, tuple) else p for p in self.steps])
        )

    @property
    def _has_rows(self) -> bool:
        return any(map(are_rows, self.parts))


def _shape(part: Part, shape: torch.Size) -> str:
    """Return the shape of a gradient as text, and how many rows of a table it is."""
    if not isinstance(part, tuple) or not are_rows(part):
        return f"{tuple(shape)}"
    return f"{counted(part[1].numel(), 'row')} of {tuple(shape)}"


def _sum(first: Part, second: Part, shape: torch.Size) -> Part:
    """Return the sum of two parts of gradients, rows if they are fewer than those of the table."""
    pairs = [part for part in (first, second) if isinstance(part, tuple)]
    if len(pairs) < 2 or sum(numbers.numel() for _, numbers in pairs) >= shape[0]:
        return torch.add(whole(first, shape), whole(second, shape))
    rows = [rows.reshape(numbers.numel(), *shape[1:]) for rows, numbers in pairs]
    numbers = [numbers.reshape(-1).to(torch.int64) for _, numbers in pairs]
    return torch.cat(rows), torch.cat(numbers)


def whole(part: Part, shape: torch.Size) -> torch.Tensor:
    """Return a part of a gradient as one tensor of the shape of its parameter."""
    if not isinstance(part, tuple):
        return part
    return unrecorded(_made_whole, part, shape)


def _made_whole(part: tuple[torch.Tensor, torch.Tensor], shape: torch.Size) -> torch.Tensor:
    if not are_rows(part):
        return torch.matmul(*part)
    rows, numbers = summed(part)
    return rows.new_zeros(shape).index_copy_(0, numbers, rows)


@final
@dataclass(frozen=True, slots=True)
class _Names:
    """The form of a record: everything but its tensors."""

    names: tuple[str, ...]
    home: Home = field(compare=False)


def _flatten_record(record: TensorRecord) -> tuple[Sequence[Any], Any, Sequence[str]]:
    names, values = zip(*record.items(), strict=True) if len(record) else ((), ())
    return values, _Names(names, record.home), names


def _record_of(cls: type[TensorRecord]) -> pytrees.Node:
    def unflatten(rest: _Names, children: Iterable[Any]) -> Any:
        found = list(children)
        if not all(isinstance(v, torch.Tensor) for v in found):
            return dict(zip(rest.names, found, strict=True))  # a record holds tensors
        return cls(rest.home, rest.home.blueprint.params_tree(found))

    return pytrees.Node(
        cls, _flatten_record, unflatten, optree.MappingEntry, pytrees.trees.MappingKey
    )


for _class in (Params, Grads):
    pytrees.register(_record_of(_class))
