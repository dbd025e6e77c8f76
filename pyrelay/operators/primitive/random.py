"""Random numbers from explicit keys.

A key is an int64 tensor of two words; nothing is drawn from a hidden state. The words come from
Philox (`philox.py`), so that every lowering gives the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import (
    Clash,
    Elementwise,
    Library,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import broadcast_shapes, expect, floating, integral, with_rank
from ...ir.types import (
    TensorType,
    Type,
    bool_,
    float32,
    float64,
    int64,
    is_float,
    show,
    tensor_type,
)
from ..shared import drawing, philox
from ..shared.operands import as_tensor

KEY: Final = tensor_type(int64, 2)
"""The type of a random key."""

KEY_SPEC: Final = TensorSpec((2,), "int64", 0, 2**31)

_NO_PATH: Final = NoGradient("random numbers do not depend on any operand smoothly")


def check_key(call: RuleCall, place: int = 0) -> None:
    """Make an operand a key. Raises Clash."""
    expect(
        call,
        place,
        KEY,
        f"`{call.op.name}` takes a random key, as relay.random.key(seed) makes one",
    )


random_key: Final = Op(
    name="random_key",
    doc="The random key of a seed.",
    params=(attribute("seed", convert=kinds.size),),
    type_rule=lambda call: KEY,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(philox.key_of, fused=Elementwise(drawing.seeded)),
    grad=_NO_PATH,
    samples=lambda: (
        Sample((), {"seed": 0}),
        Sample((), {"seed": 2**40 + 7}),
        Sample((), {"seed": -1}),
    ),
)


def _seed_type(call: RuleCall) -> Type:
    integral(call, 0)
    with_rank(call, 0, 0)
    return KEY


def _key(torch: Any, seed: Any) -> Any:
    if not isinstance(seed, torch.Tensor):
        return philox.key_of(torch, None, seed)
    seed = seed.to(torch.int64)
    return torch.stack((seed & philox.MASK, (seed >> 32) & philox.MASK))


key: Final = Op(
    name="key",
    doc="The random key of a seed that the program computes.",
    params=(operand("seed"),),
    type_rule=_seed_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_key, fused=Elementwise(drawing.seeded_by)),
    grad=_NO_PATH,
    samples=lambda: (Sample((TensorSpec((), "int64", 0, 99),)), Sample((3,))),
)


def _fold_type(call: RuleCall) -> Type:
    check_key(call)
    integral(call, 1)
    with_rank(call, 1, 0)
    return KEY


fold_in: Final = Op(
    name="fold_in",
    doc="The key for a number under a key: another stream for each number.",
    params=(operand("key"), operand("data")),
    type_rule=_fold_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(philox.fold, fused=Elementwise(drawing.folded_in)),
    grad=_NO_PATH,
    samples=lambda: (Sample((KEY_SPEC, 0)), Sample((KEY_SPEC, TensorSpec((), "int64", 0, 99)))),
)


def _split_type(call: RuleCall) -> Type:
    check_key(call)
    return TensorType((Dim.of(call.attrs["num"]), Dim.of(2)), int64)


random_split: Final = Op(
    name="random_split",
    doc="Several keys made of one, as rows.",
    params=(operand("key"), attribute("num", 2, kinds.size)),
    type_rule=_split_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(philox.split, fused=Elementwise(drawing.split_off)),
    grad=_NO_PATH,
    samples=lambda: (
        Sample((KEY_SPEC,)),
        Sample((KEY_SPEC,), {"num": 5}),
        Sample((KEY_SPEC,), {"num": 0}),
    ),
)


def _philox_type(call: RuleCall) -> Type:
    keys, counter = integral(call, 0), integral(call, 1)
    lead = broadcast_shapes(call, [keys.shape[:-1], counter.shape])
    return TensorType((*lead, Dim.of(4)), int64)


def _philox(torch: Any, keys: Any, counter: Any, purpose: int) -> Any:
    counter = as_tensor(torch, counter, keys)
    halves = (counter & philox.MASK, (counter >> 32) & philox.MASK)
    return torch.stack(philox.philox((*halves, 0, purpose), keys.unbind(-1)), dim=-1)


philox_words: Final = Op(
    name="philox_words",
    doc="The four words of Philox for each 64-bit counter under a key; keys broadcast to counters.",
    params=(operand("key"), operand("counter"), attribute("purpose", convert=kinds.whole)),
    type_rule=_philox_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_philox, is_fresh=True, fused=Elementwise(drawing.numbered)),
    grad=_NO_PATH,
    samples=lambda: (
        Sample((KEY_SPEC, TensorSpec((3,), "int64", 0, 2**40)), {"purpose": philox.DRAW}),
        Sample((KEY_SPEC, TensorSpec((), "int64", 0, 9)), {"purpose": philox.FOLD}),
        Sample(
            (TensorSpec((4, 1, 2), "int64", 0, 2**31), TensorSpec((3,), "int64", 0, 9)),
            {"purpose": philox.SPLIT},
        ),
    ),
)


def drawn_type(call: RuleCall) -> Type:
    """Return the type of floats that are drawn: of the size and dtype asked for."""
    check_key(call)
    dtype = call.attrs["dtype"] or float32
    if not is_float(dtype):
        call.clash(f"`{call.op.name}` draws floats, not {dtype}")
    return TensorType(call.attrs["size"], dtype)


DRAWN: Final = (
    operand("key"),
    attribute("size", (), kinds.shape),
    attribute("dtype", None, kinds.optional(kinds.dtype)),
)
"""The parameters of a draw from a distribution without parameters."""


def drawn_samples() -> Iterable[Sample]:
    """Yield samples of such a draw."""
    yield Sample((KEY_SPEC,))
    yield Sample((KEY_SPEC,), {"size": (3, 5)})
    yield Sample((KEY_SPEC,), {"size": (4,), "dtype": float64})
    yield Sample((KEY_SPEC,), {"size": (0, 3)})


def _normal(torch: Any, key: Any, size: tuple[int, ...], dtype: Any) -> Any:
    return philox.normal(torch, key, prod(size), dtype or torch.float32).reshape(size)


normal: Final = Op(
    name="normal",
    doc="Numbers from the standard normal distribution.",
    params=DRAWN,
    type_rule=drawn_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_normal, fused=Elementwise(drawing.normal)),
    grad=_NO_PATH,
    torch_name=None,
    samples=drawn_samples,
)


def _uniform(
    torch: Any, key: Any, size: tuple[int, ...], low: float, high: float, dtype: Any
) -> Any:
    found = philox.uniform(torch, key, prod(size), dtype or torch.float32).reshape(size)
    return found if (low, high) == (0.0, 1.0) else low + (high - low) * found


uniform: Final = Op(
    name="uniform",
    doc="Numbers from `low` up to, not including, `high`, all equally likely.",
    params=(
        operand("key"),
        attribute("size", (), kinds.shape),
        attribute("low", 0.0, kinds.number),
        attribute("high", 1.0, kinds.number),
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    type_rule=drawn_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_uniform, fused=Elementwise(drawing.uniform)),
    grad=_NO_PATH,
    samples=lambda: (
        Sample((KEY_SPEC,)),
        Sample((KEY_SPEC,), {"size": (3, 5), "low": -1.0}),
        Sample((KEY_SPEC,), {"size": (4,), "dtype": float64}),
        Sample((KEY_SPEC,), {"size": (0, 3)}),
    ),
)


def _bernoulli_type(call: RuleCall) -> Type:
    check_key(call)
    size = call.attrs["size"]
    if not call.given(1):
        return TensorType(size or (), bool_)
    chance = floating(call, 1)
    if size is None:
        return TensorType(chance.shape, bool_)
    try:
        for have, want in zip(broadcast_shapes(call, [chance.shape, size]), size, strict=True):
            call.solver.unify_dims(have, want)
    except (Clash, ValueError):
        call.clash(f"`bernoulli` cannot broadcast chances of {show(chance)} to its size", 1)
    return TensorType(size, bool_)


def _bernoulli(torch: Any, key: Any, p: Any, size: Any) -> Any:
    chance = as_tensor(torch, 0.5 if p is None else p, key)
    size = tuple(chance.shape) if size is None else size
    return philox.chances(torch, key, prod(size)).reshape(size) < chance


bernoulli: Final = Op(
    name="bernoulli",
    doc="True with chance `p`, one half unless given; of the shape of `p` unless `size` says.",
    params=(operand("key"), optional("p"), attribute("size", None, kinds.optional(kinds.shape))),
    type_rule=_bernoulli_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_bernoulli, fused=Elementwise(drawing.chosen)),
    grad=_NO_PATH,
    torch_name=None,
    samples=lambda: (
        Sample((KEY_SPEC, None), {"size": (3, 5)}),
        Sample((KEY_SPEC, TensorSpec((5,), low=0.0, high=1.0)), {"size": (3, 5)}),
        Sample((KEY_SPEC, TensorSpec((4,), low=0.0, high=1.0))),
        Sample((KEY_SPEC, None), {"size": (0, 3)}),
        Sample((KEY_SPEC, 0.3), {"size": (7,)}),
    ),
)
