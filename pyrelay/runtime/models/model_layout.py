"""The shape of a model's values: from the nested tuples of a program to flat names and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias, final

from ...dataclass import dataclass
from ...ir.types import RefType, TensorType, TupleType, Type
from ...translate.program.models import ModelSpec, SubModelSpec, ValueSpec

if TYPE_CHECKING:
    import torch


@final
@dataclass(frozen=True, slots=True, eq=False)
class Home:
    """The model that a record of tensors belongs to, as it was: its tree, its mode, its state, and
    the names of its frozen parameters."""

    blueprint: Blueprint
    training: bool
    state: tuple[torch.Tensor, ...]
    frozen: frozenset[str] = frozenset()

    @property
    def mode(self) -> Mode:
        """The facts about the model that select a program."""
        return self.blueprint, self.training, self.frozen


@final
@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The facts about a model that select a direct call: its tree, whether it trains, which of its
    parameters require grad, and the dtype and device that all have. There is one object for all
    models of which these are the same."""

    is_trainable: bool
    """Whether a parameter requires grad."""


Mode: TypeAlias = "tuple[Blueprint, bool, frozenset[str]]"
"""The parts of a model that a program depends on: its tree, whether it trains, its frozen
parameters."""

Fields: TypeAlias = tuple[ValueSpec | SubModelSpec, ...]


@final
@dataclass(frozen=True, eq=False)
class Leaf:
    """One hidden value: its dotted name, its declaration, and its place among all of its kind."""

    name: str
    spec: ValueSpec
    position: int
    is_state: bool = False

    @property
    def table(self) -> tuple[str, bool]:
        """The part of the model that it belongs to, and whether it is in the table of its state."""
        return self.name.rpartition(".")[0], self.is_state


@final
class Blueprint:
    """A model's tree of parameters and state. Copies of a model share it."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> Any:
        return Blueprint, (self.spec,)

    @property
    def name(self) -> str:
        """The name of the model definition."""
        return self.spec.definition.name

    @cached_property
    def params(self) -> tuple[Leaf, ...]:
        """The parameters in program order."""
        return tuple(_leaves(self.spec, state=False))

    @cached_property
    def state(self) -> tuple[Leaf, ...]:
        """The buffers and keys in program order."""
        return tuple(_leaves(self.spec, state=True))

    @cached_property
    def param_names(self) -> tuple[str, ...]:
        """The names of the parameters in program order."""
        return tuple(leaf.name for leaf in self.params)

    @cached_property
    def _kinds(self) -> dict[tuple[Any, ...], Kind]:
        return {}

    def kind(self, facts: tuple[Any, ...], *, is_trainable: bool) -> Kind:
        """Return the kind of the models for which some facts hold."""
        found = self._kinds.get(facts)
        return found or self._kinds.setdefault(facts, Kind(is_trainable))

    @cached_property
    def stateless_home(self) -> tuple[Home, Home]:
        """The home of any model without state: in eval mode, and in train mode."""
        return Home(self, training=False, state=()), Home(self, training=True, state=())

    @cached_property
    def parts(self) -> Mapping[str, Blueprint]:
        """The models inside the model, by dotted name; copies of the model share them."""
        found: dict[str, Blueprint] = {}
        pending = [("", self.spec)]
        while pending:
            prefix, spec = pending.pop()
            for part in (*spec.params, *spec.state):
                if isinstance(part, SubModelSpec) and f"{prefix}{part.name}" not in found:
                    found[f"{prefix}{part.name}"] = Blueprint(part.model)
                    pending.append((f"{prefix}{part.name}.", part.model))
        return found

    @cached_property
    def read(self) -> Callable[[Sequence[Mapping[str, Any]]], list[Any]]:
        """The function from the tables of a model's parts, in the order in which the parameters and
        the state are first found there, to these."""
        leaves = (*self.params, *self.state)
        tables = {table: n for n, table in enumerate(dict.fromkeys(v.table for v in leaves))}
        found = (f"t[{tables[v.table]}][{v.name.rpartition('.')[2]!r}]" for v in leaves)
        return eval(f"lambda t: [{', '.join(found)}]", {})

    @cached_property
    def params_tree(self) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        """The function from flat parameters to the program's nested tuple."""
        return _compile_tree(self.spec, state=False)

    @cached_property
    def state_tree(self) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        """The function from flat state cells to the program's nested tuple."""
        return _compile_tree(self.spec, state=True)


def _fields(spec: ModelSpec, *, state: bool) -> Fields:
    return spec.state if state else spec.params


def _leaves(spec: ModelSpec, *, state: bool) -> Iterator[Leaf]:
    pending: list[tuple[str, ValueSpec | SubModelSpec]] = [
        ("", part) for part in reversed(_fields(spec, state=state))
    ]
    position = 0
    while pending:
        prefix, part = pending.pop()
        if isinstance(part, ValueSpec):
            yield Leaf(prefix + part.name, part, position, state)
            position += 1
            continue
        inside = reversed(_fields(part.model, state=state))
        pending += ((f"{prefix}{part.name}.", p) for p in inside)


def _compile_tree(spec: ModelSpec, *, state: bool) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function written out for this tree: it runs once a call of the model."""
    parts: list[str] = []
    pending: list[Any] = [spec]
    position = 0
    while pending:
        part = pending.pop()
        match part:
            case ModelSpec():
                parts.append("(")
                pending += (")", *reversed(_fields(part, state=state)))
            case SubModelSpec(model=model):
                pending.append(model)
            case ValueSpec():
                parts.append(f"v[{position}],")
                position += 1
            case _:
                parts.append(")," if pending else ")")
    return eval(f"lambda v: {''.join(parts)}", {})


def leaf_types(ty: Type) -> list[TensorType]:
    """Return the tensor types in the type of a model's parameters or state, in program order."""
    found: list[TensorType] = []
    pending = [ty]
    while pending:
        match pending.pop():
            case TensorType() as leaf:
                found.append(leaf)
            case TupleType(fields):
                pending += reversed(fields)
            case RefType(value):
                pending.append(value)
            case other:
                raise AssertionError(f"a model holds no {other}")
    return found
