"""Making a model: shapes from inference, first values from the seed and the parameters' names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...diagnostics.catalogue.model import OpenDims, UnknownDim
from ...diagnostics.catalogue.signatures import BadValue
from ...diagnostics.diagnostic import CheckError
from ...garbage import uncollected
from ...ir.dims import Dim, DimVar
from ...ir.types import Substitution, TensorType, Type, show
from .model import Model, initial_value
from .model_layout import Blueprint, Leaf, leaf_types

if TYPE_CHECKING:
    import torch

    from .bound import Running


def create(
    runner: Running,
    seed: int,
    dims: Mapping[Any, int],
    hyper: Mapping[str, Any],
    device: torch.device,
) -> Model:
    """Return a new model of a definition. Raises CheckError when its shapes are not all fixed."""
    given = {str(name): int(value) for name, value in dims.items()}
    with uncollected():
        blueprint, function = runner.plan_of_model(hyper, given)
    open_sizes = [p.name for p in function.type_params if isinstance(p, DimVar)]
    for name in given:
        if name not in open_sizes:
            raise CheckError(UnknownDim(function.span, blueprint.name, name, tuple(open_sizes)))
    params_type, state_type = (p.ty for p in function.params[:2])
    assert params_type is not None
    assert state_type is not None
    sizes = {name: Dim.of(value) for name, value in given.items()}
    params = _values(blueprint, blueprint.params, params_type, sizes, seed, device)
    state = _values(blueprint, blueprint.state, state_type, sizes, seed, device)
    return Model(blueprint, runner, params, state)


def _values(
    blueprint: Blueprint,
    leaves: tuple[Leaf, ...],
    ty: Type,
    sizes: dict[str, Dim],
    seed: int,
    device: torch.device,
) -> list[torch.Tensor]:
    replace = Substitution(sizes, {})
    found: list[torch.Tensor] = []
    for leaf, leaf_type in zip(leaves, leaf_types(ty), strict=True):
        fixed = replace(leaf_type)
        assert isinstance(fixed, TensorType)
        open_dims = sorted({n for d in fixed.shape for n in d.names()})
        if open_dims:
            span, name = leaf.spec.span, blueprint.name
            raise CheckError(OpenDims(name, span, leaf.name, show(fixed), tuple(open_dims)))
        if any((d.constant or 0) < 0 for d in fixed.shape):
            what, why = f"the shape of `{leaf.name}`", f"{show(fixed)} has a negative size"
            raise CheckError(BadValue(leaf.spec.span, what, why))
        found.append(initial_value(leaf, fixed, seed, device))
    return found
