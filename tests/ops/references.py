"""What each operator must equal: the torch function it names, or a function here.

An entry is needed where torch's own signature differs from ours or torch has no such function; all
others are called by their torch name with our argument names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch.nn import functional
from torch.optim import adam, sgd

from pyrelay.ir.calls.attributes import bind_attrs
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Op, Promotion, Role
from pyrelay.ir.types import DTYPES, DType
from pyrelay.lower_torch.constants import torch_dtype
from pyrelay.operators.builder import promoted_dtype


def _reduce_all_by_default(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: torch.Tensor, dim: Any = None, **rest: Any) -> Any:
        return function(x, dim=tuple(range(x.dim())) if dim is None else dim, **rest)

    return reference


def _pair(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is not None:
            return tuple(function(x, dim, keepdim))
        return function(x).reshape((1,) * x.dim() if keepdim else ())

    return reference


def _prod(
    x: torch.Tensor, dim: int | None = None, keepdim: bool = False, dtype: Any = None
) -> torch.Tensor:
    if dim is not None:
        return torch.prod(x, dim, keepdim, dtype=dtype)
    return torch.prod(x, dtype=dtype).reshape((1,) * x.dim() if keepdim else ())


def _unbiased(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(
        x: torch.Tensor, dim: Any = None, unbiased: bool | None = None, **rest: Any
    ) -> Any:
        if unbiased is not None:
            rest["correction"] = int(unbiased)
        return function(x, dim=dim, **rest)

    return reference


def _recurrence(
    factor: torch.Tensor, term: torch.Tensor, dim: int, reverse: bool = False, initial: float = 0.0
) -> torch.Tensor:
    pairs = list(zip(factor.unbind(dim), term.unbind(dim), strict=True))
    found: list[torch.Tensor] = []
    state = torch.full_like(factor.sum(dim), initial)
    for a, b in reversed(pairs) if reverse else pairs:
        found.append(state)
        state = a * state + b
    if not found:
        return factor
    return torch.stack(found[::-1] if reverse else found, dim)


def _without_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(*args: Any, **rest: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **rest)

    return reference


def _batch_norm(x: torch.Tensor, **rest: Any) -> Any:
    rest["running_mean"] = rest["running_mean"].clone()
    rest["running_var"] = rest["running_var"].clone()
    found = functional.batch_norm(x, **rest)
    return found, rest["running_mean"], rest["running_var"]


def _flipped_index(x: torch.Tensor, spec: Any, indices: Sequence[Any]) -> torch.Tensor:
    """Index by positions in a tensor of positions, which numpy can do with negative steps."""
    entries: dict[str, Callable[..., Any]] = {
        "int": lambda k: indices[k].numpy() if isinstance(indices[k], torch.Tensor) else indices[k],
        "slice": slice,
        "new": lambda: None,
        "ellipsis": lambda: ...,
    }
    places = torch.arange(x.numel()).reshape(x.shape).numpy()
    found = places[tuple(entries[kind](*rest) for kind, *rest in spec)]
    return torch.as_tensor(found.copy())


def _index(x: torch.Tensor, indices: Any, spec: Any) -> torch.Tensor:
    return x.reshape(-1)[_flipped_index(x, spec, indices)]


def _written(x: torch.Tensor, indices: Any, value: Any, spec: Any, *, add: bool) -> torch.Tensor:
    places = _flipped_index(x, spec, indices)
    value = torch.broadcast_to(value, places.shape).reshape(-1)
    flat = x.reshape(-1)
    if add:
        return flat.index_add(0, places.reshape(-1), value).reshape(x.shape)
    return flat.index_put((places.reshape(-1),), value).reshape(x.shape)


def _layer_statistics(
    x: torch.Tensor, normalized_shape: Any, weight: Any = 1.0, bias: Any = 0.0, eps: float = 1e-5
) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    mean = x.mean(dims, keepdim=True)
    factor = ((x - mean).square().mean(dims, keepdim=True) + eps).rsqrt()
    return (x - mean) * factor * weight + bias, mean, factor


def _layer_backward(
    g: torch.Tensor,
    input: torch.Tensor,  # noqa: A002  torch's name
    mean: torch.Tensor,
    rstd: torch.Tensor,
    normalized_shape: Any,
    weight: Any = None,
) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    lead = tuple(range(input.dim() - len(normalized_shape)))
    standard = (input - mean) * rstd
    h = g if weight is None else g * weight
    to_x = h - h.mean(dims, keepdim=True) - standard * (h * standard).mean(dims, keepdim=True)
    return rstd * to_x, () if weight is None else (g * standard).sum(lead)


def _by_channel(vector: Any, x: torch.Tensor) -> Any:
    shape = (1, -1, *(1,) * (x.dim() - 2))
    return vector.reshape(shape) if isinstance(vector, torch.Tensor) else vector


def _batch_statistics(
    x: torch.Tensor, weight: Any = 1.0, bias: Any = 0.0, eps: float = 1e-5
) -> Any:
    dims = tuple(d for d in range(x.dim()) if d != 1)
    mean, factor = x.mean(dims), (x.var(dims, correction=0) + eps).rsqrt()
    out = (x - _by_channel(mean, x)) * _by_channel(factor, x)
    return out * _by_channel(weight, x) + _by_channel(bias, x), mean, factor, x.var(dims)


def _batch_backward(
    g: torch.Tensor,
    input: torch.Tensor,  # noqa: A002  torch's name
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: Any = None,
    eps: float = 0.0,
) -> Any:
    dims = tuple(d for d in range(g.dim()) if d != 1)
    standard = (input - _by_channel(mean, g)) * _by_channel(rstd, g)
    h = g if weight is None else g * _by_channel(weight, g)
    to_x = h - h.mean(dims, keepdim=True) - standard * (h * standard).mean(dims, keepdim=True)
    return _by_channel(rstd, g) * to_x, () if weight is None else (g * standard).sum(dims)


def _binary_cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: Any = 1.0,
    pos_weight: Any = 1.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """The formula: torch gives its own function no derivative by the weights."""
    positive, negative = -functional.logsigmoid(x), -functional.logsigmoid(-x)
    loss = weight * (pos_weight * target * positive + (1 - target) * negative)
    return {"mean": torch.mean, "sum": torch.sum, "none": torch.clone}[reduction](loss)


def _nll(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> torch.Tensor:
    """The formula, which torch's own value must equal: it has no derivative by the weights."""
    dim, counts = min(1, x.dim() - 1), target.ne(ignore_index)
    chosen = torch.where(counts, target, 0)
    share = counts.to(x.dtype) if weight is None else torch.where(counts, weight[chosen], 0.0)
    each = -share * x.gather(dim, chosen.unsqueeze(dim)).squeeze(dim)
    found = {"none": each, "sum": each.sum(), "mean": each.sum() / share.sum()}[reduction]
    fixed = None if weight is None else weight.detach()
    own = functional.nll_loss(x, target, fixed, ignore_index=ignore_index, reduction=reduction)
    torch.testing.assert_close(found.detach(), own.detach(), check_dtype=False, equal_nan=True)
    return found


def _cross_entropy(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """The formula, which torch's own value must equal, as for `nll_loss`."""
    fixed = None if weight is None else weight.detach()
    options = {"reduction": reduction, "label_smoothing": label_smoothing}
    own = functional.cross_entropy(x, target, fixed, ignore_index=ignore_index, **options)
    if weight is None:
        return own
    dim = min(1, x.dim() - 1)
    counts = torch.ones(()) if target.is_floating_point() else target.ne(ignore_index)
    if not target.is_floating_point():
        classes = torch.where(counts, target, 0)
        total = torch.where(counts, weight[classes], 0.0).sum()
        target = functional.one_hot(classes, x.shape[dim]).movedim(-1, dim).to(x.dtype)
    else:
        total = x.new_tensor(x.numel() / x.shape[dim])
    target = target * (1 - label_smoothing) + label_smoothing / x.shape[dim]
    weight = weight.reshape([-1 if d == dim else 1 for d in range(x.dim())])
    each = -(x.log_softmax(dim) * target * weight).sum(dim) * counts
    found = {"none": each, "sum": each.sum(), "mean": each.sum() / total}[reduction]
    torch.testing.assert_close(found.detach(), own.detach(), check_dtype=False)
    return found


def _bincount(
    x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor:
    """The formula, which torch's own value must equal: it has no derivative by the weights."""
    fixed = None if weights is None else weights.detach()
    own = torch.bincount(x, fixed, minlength)
    if weights is None:
        return own
    found = weights.new_zeros(len(own)).index_add(0, x.long(), weights)
    torch.testing.assert_close(found.detach(), own, check_dtype=False)
    return found


def _interpolate(x: torch.Tensor, **attrs: Any) -> torch.Tensor:
    alone = {k: v[0] for k, v in attrs.items() if isinstance(v, tuple) and len(v) == 1}
    return functional.interpolate(x, **{**attrs, **alone})


def _arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> torch.Tensor:
    bounds = (0, start) if end is None else (start, end)
    return torch.arange(*bounds, step, dtype=dtype)


def _to_number(dtype: torch.dtype) -> Callable[..., Any]:
    return lambda x: torch.as_tensor(x).reshape(()).to(dtype)


def _slope(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a function's own derivative by torch, which torch can differentiate again."""

    def reference(grad: torch.Tensor, *, input: torch.Tensor, **rest: Any) -> torch.Tensor:  # noqa: A002  our name
        with torch.enable_grad():
            x = input if input.requires_grad else input.clone().requires_grad_(True)
            (found,) = torch.autograd.grad(function(x, **rest), x, grad, create_graph=True)
        return found

    return reference


def _softmax_slope(grad: torch.Tensor, output: torch.Tensor, dim: int) -> torch.Tensor:
    return output * (grad - (grad * output).sum(dim, keepdim=True))


def _nll_slope(
    grad: torch.Tensor,
    *,
    input: torch.Tensor,  # noqa: A002  our name
    target: torch.Tensor,
    total_weight: torch.Tensor,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> torch.Tensor:
    dim = min(1, input.dim() - 1)
    share = (grad / total_weight if reduction == "mean" else grad).expand(target.shape)
    share = torch.where(target == ignore_index, 0.0, share)
    hit = functional.one_hot(target, input.shape[dim]).movedim(-1, dim)
    return -(hit * share.unsqueeze(dim))


def _table_slope(
    grad: torch.Tensor,
    *,
    input: torch.Tensor,  # noqa: A002  our name
    num_embeddings: int,
) -> torch.Tensor:
    row = grad.shape[input.dim() :]
    table = grad.new_zeros(num_embeddings, *row)
    return table.index_add(0, input.reshape(-1), grad.reshape(input.numel(), *row))


def _momentum_step(
    param: torch.Tensor, *, velocity: torch.Tensor | None = None, **rest: Any
) -> tuple[Any, Any]:
    """Torch's own step, which writes to what it is given."""
    moved, kept = param.clone(), None if velocity is None else velocity.clone()
    options = {"weight_decay": 0.0, "momentum": 0.0, "nesterov": False, **rest}
    grad, options["lr"] = options.pop("grad"), options["lr"].to(param.dtype)
    sgd.sgd([moved], [grad], [kept], foreach=False, dampening=0.0, maximize=False, **options)
    return moved, kept


def _adam_step(
    param: torch.Tensor,
    *,
    grad: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: Any,
    lr: torch.Tensor,
    decoupled: bool = False,
    **rest: Any,
) -> tuple[Any, Any, Any]:
    """Torch's own step, which counts, and writes to what it is given."""
    moved, first, second = (t.clone() for t in (param, first, second))
    options = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, **rest}
    adam.adam(
        *([moved], [grad], [first], [second], [], [torch.as_tensor(step).to(torch.float64) - 1]),
        foreach=False,
        differentiable=True,
        amsgrad=False,
        maximize=False,
        lr=lr.to(param.dtype),
        decoupled_weight_decay=decoupled,
        **options,
    )
    return moved, first, second


def _by_rows(step: Callable[..., Any], *moments: str) -> Callable[..., Any]:
    """Return a step that leaves rows whose gradient is zero, one row after the other."""

    def reference(param: torch.Tensor, *, by_rows: bool = False, **rest: Any) -> Any:
        found = step(param, **rest)
        if not by_rows:
            return found
        before = (param, *(rest[m] for m in moments))
        moves = [bool(row.any()) for row in rest["grad"]]
        return tuple(
            torch.stack([n if m else o for n, o, m in zip(new, old, moves, strict=True)])
            for new, old in zip(found, before, strict=True)
        )

    return reference


REFERENCES: Mapping[str, Callable[..., Any]] = {
    "adam_step": _by_rows(_adam_step, "first", "second"),
    "arange": _arange,
    "batch_norm": _batch_norm,
    "batch_norm_backward": _batch_backward,
    "batch_norm_with_statistics": _batch_statistics,
    "layer_norm_backward": _layer_backward,
    "layer_norm_with_statistics": _layer_statistics,
    "binary_cross_entropy_with_logits": _binary_cross_entropy,
    "bincount": _bincount,
    "conv1d": _without_warnings(functional.conv1d),
    "conv2d": _without_warnings(functional.conv2d),
    "conv3d": _without_warnings(functional.conv3d),
    "einsum": lambda equation, operands: torch.einsum(equation, *operands),
    "elu_grad": _slope(functional.elu),
    "embedding": lambda x, **rest: functional.embedding(torch.as_tensor(x).long(), **rest),
    "embedding_grad": _table_slope,
    "gelu_grad": _slope(functional.gelu),
    "extract": _index,
    "index": _index,
    "index_accumulate": partial(_written, add=True),
    "interpolate": _interpolate,
    "leaky_relu_grad": _slope(functional.leaky_relu),
    "log_softmax_grad": lambda g, output, dim: g - output.exp() * g.sum(dim, keepdim=True),
    "nll_loss": _nll,
    "nll_loss_grad": _nll_slope,
    "relu_grad": lambda g, output: torch.where(output > 0, g, 0.0),
    "sigmoid_grad": lambda g, output: g * output * (1 - output),
    "silu_grad": _slope(functional.silu),
    "softmax_grad": _softmax_slope,
    "softplus_grad": _slope(functional.softplus),
    "tanh_grad": lambda g, output: g * (1 - output * output),
    "kl_div": _without_warnings(functional.kl_div),
    "searchsorted": _without_warnings(torch.searchsorted),
    "set_at": partial(_written, add=False),
    "softmax_cross_entropy": _cross_entropy,
    "split": lambda x, **rest: tuple(torch.split(x, **rest)),
    "to_bool": _to_number(torch.bool),
    "to_float": _to_number(torch.float32),
    "to_int": _to_number(torch.int64),
    "all": lambda x, dim=None, keepdim=False: torch.all(x.bool(), dim, keepdim),
    "any": lambda x, dim=None, keepdim=False: torch.any(x.bool(), dim, keepdim),
    "cast": lambda x, dtype: x.to(dtype),
    "max": _pair(torch.max),
    "mean": _reduce_all_by_default(torch.mean),
    "momentum_step": _by_rows(_momentum_step, "velocity"),
    "min": _pair(torch.min),
    "prod": _prod,
    "quotient": lambda x, other: torch.div(
        x, other, rounding_mode=None if other.is_floating_point() else "trunc"
    ),
    "recurrence": _recurrence,
    "sort": lambda x, **attrs: tuple(torch.sort(x, **attrs)),
    "std": _unbiased(torch.std),
    "sum": _reduce_all_by_default(torch.sum),
    "topk": lambda x, **attrs: tuple(torch.topk(x, **attrs)),
    "var": _unbiased(torch.var),
}


def reference(op: Op) -> Callable[..., Any] | None:
    """Return the function that an operator must equal, if there is one."""
    if op.name in REFERENCES:
        return REFERENCES[op.name]
    if op.torch_name == op.name:
        return getattr(torch, op.name, None)
    return None if op.torch_name is None else attrgetter(op.torch_name)(torch)


def call_reference(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Return the reference's value: the first operand by position, all else under our names."""
    function = reference(op)
    assert function is not None, f"{op.name} has no reference"
    values = dict(zip((p.name for p in op.operands), promoted(op, operands), strict=False))
    named = {k: v for k, v in values.items() if v is not None}
    normal = bind_attrs(op, attrs)
    named |= {k: attribute(normal[k]) for k in attrs}
    first = [named.pop(op.params[0].name)] if op.params[0].role is Role.OPERAND else []
    return function(*first, **named)


def attribute(value: Any) -> Any:
    """Return an attribute as torch takes it."""
    match value:
        case DType():
            return torch_dtype(value)
        case Dim():
            return value.constant
        case tuple() | list():
            return tuple(map(attribute, value))
        case _:
            return value


def promoted(op: Op, operands: Sequence[Any]) -> list[Any]:
    """Return the operands in the common dtype that the operator's promotion names, as tensors."""
    if op.promotion is Promotion.NONE:
        return [_to(v, None) for v in operands]
    marked = [v for v, p in zip(operands, op.operands, strict=False) if p.promote]
    found = [_dtype(v) for value in marked for v in _flat(value) if isinstance(v, torch.Tensor)]
    highest = max((d.kind.value for d in found), default=-1)
    found += [d for d in map(_number_dtype, _numbers(marked)) if d.kind.value > highest]
    dtype = torch_dtype(promoted_dtype(op, found))
    pairs = zip(operands, op.operands, strict=False)
    return [_to(v, dtype if p.promote else None) for v, p in pairs]


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, tuple) else [value]


def _numbers(values: Sequence[Any]) -> list[Any]:
    flat = [v for value in values for v in _flat(value)]
    return [v for v in flat if isinstance(v, bool | int | float)]


def _dtype(value: torch.Tensor) -> DType:
    return DTYPES[str(value.dtype).removeprefix("torch.")]


def _number_dtype(number: float) -> DType:
    return DTYPES[{bool: "bool", int: "int64", float: "float32"}[type(number)]]


def _to(value: Any, dtype: torch.dtype | None) -> Any:
    if isinstance(value, tuple):
        return tuple(_to(v, dtype) for v in value)
    if isinstance(value, torch.Tensor):
        return value if dtype is None else value.to(dtype)
    return value if value is None else torch.tensor(value, dtype=dtype)
