"""Values that an exported model computes from its weights alone: computed once, at its export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...ir.types import dim_names
from ...ir.verify import Stage
from ...passes.rewrites.fold_norms import NORM_RULES
from ...passes.rewrites.stored_weights import Path, stored_weights
from ...passes.simplify.rules import apply_rules
from ...passes.simplify.simplify import simplify
from ..border.devices import CPU
from ..compile.program import Program
from ..entries.open_program import EvalProgram, OpenProgram
from ..values.structure import tensors

if TYPE_CHECKING:
    import torch

_WEIGHTS: Final = 2


def folded(base: EvalProgram, params: Any, state: Any) -> tuple[EvalProgram, Any]:
    """Return a model in eval mode whose batch normalisation is part of the products before it, with
    the parameters that it then has; both as they are where there is nothing to fold.

    Parameters keep their names and types: scaled weights take the places of weights.
    """
    program, entry = base.program, base.program.entry
    weights = program.type.params[:_WEIGHTS]
    if base.opened.is_open or any(dim_names(ty) for ty in weights):
        return base, params
    device = _device(params)
    plain = simplify(program.anf, entry)
    found = apply_rules(plain, NORM_RULES, program.now(device).view.concerns)
    stored = None if found is plain else stored_weights(simplify(found, entry), entry)
    if stored is None:
        return base, params
    source = Program(stored.module, stored.function, program.data, stage=Stage.ANF)
    values = tensors(source.interpret((params, state), device))
    module = simplify(stored.module, entry)
    made = replace(
        base,
        program=Program.of_typed(module, entry, program.data),
        opened=OpenProgram(module, entry, program.data),
    )
    return made, _with(params, dict(zip(stored.places, values, strict=True)), (0,))


def _device(params: Any) -> torch.device:
    found: Sequence[torch.Tensor] = tensors(params)
    return found[0].device if found else CPU


def _with(tree: Any, values: Mapping[Path, torch.Tensor], place: Path) -> Any:
    """Return nested tuples of weights with some of them replaced. They nest as models do."""
    if place in values:
        return values[place]
    if not isinstance(tree, tuple):
        return tree
    return tuple(_with(part, values, (*place, i)) for i, part in enumerate(tree))
