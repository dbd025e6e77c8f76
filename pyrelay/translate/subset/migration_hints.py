"""Habits from torch and numpy that do not carry over, and what to write instead."""

from __future__ import annotations

from typing import Final

_DEVICES: Final = "compiled code runs where its arguments are: leave devices out"
_GRADIENTS: Final = "gradients are functions: `relay.grad(f)(x)`"
_VALUES: Final = "values stay tensors in compiled code: leave it out"
_DTYPES: Final = "write `relay.cast(x, relay.float64)`"
_NOISE: Final = "random numbers come from a key: `relay.random.normal(key, (3,))`"
_UNIFORM: Final = "random numbers come from a key: `relay.random.uniform(key, (3,))`"
_DATA: Final = "make it outside and mention it as `relay.const(t)`, or pass it as an argument"
_NUMBERS: Final = "write `relay.tensor([...])`; a tensor made outside is `relay.const(t)`"
_OPTIMIZERS: Final = "write `opt = relay.optim.adam(lr=1e-3)`, or `sgd`, `adamw`"
_MEDIAN: Final = "sort it: `relay.sort(x, dim=0).values[(len(x) - 1) // 2]`"
_UPDATES: Final = "write `relay.update_model_params(model, grads, lr=0.1)`"
STRINGS: Final = "strings know `==`, `+`, `len` and formats here: do the rest before the call"

OF_VALUES: Final[dict[str, str]] = {
    "backward": _GRADIENTS,
    "bernoulli_": _NOISE,
    "copy_": "tensors never change: give the new value a name",
    "cpu": _DEVICES,
    "cuda": _DEVICES,
    "data": _VALUES,
    "device": _DEVICES,
    "dtype": f"dtypes are in the annotations; to change one, {_DTYPES}",
    "eval": "the mode is the caller's: call `model.eval()` in the script",
    "fill_": "tensors never change: write `x = relay.full(...)`",
    "format": 'write an f-string: `f"{x:.3f}"`',
    "grad": _GRADIENTS,
    "item": _VALUES,
    "lower": STRINGS,
    "median": _MEDIAN,
    "normal_": _NOISE,
    "numpy": _VALUES,
    "parameters": "they are `m.params`; `relay.update_model_params(m, grads, lr=0.1)` steps",
    "requires_grad": _GRADIENTS,
    "requires_grad_": _GRADIENTS,
    "split": STRINGS,
    "startswith": STRINGS,
    "step": _UPDATES,
    "strip": STRINGS,
    "tolist": _VALUES,
    "train": "the mode is the caller's: call `model.train()` in the script",
    "type": _DTYPES,
    "t": "write `x.T`",
    "type_as": _DTYPES,
    "uniform_": _UNIFORM,
    "upper": STRINGS,
    "zero_": "tensors never change: write `x = relay.zeros_like(x)`",
    "zero_grad": "gradients are values, and never add up by themselves: leave it out",
}
"""Methods and attributes of torch's tensors, modules and optimisers, and of strings."""

_DICTIONARIES: Final = "there are no dictionaries here: use a tuple, or a frozen dataclass"

OF_CONTAINERS: Final[dict[str, str]] = {
    "get": _DICTIONARIES,
    "indices": "write `values, indices = x.max(dim=0)`, or `x.max(dim=0).indices`",
    "items": _DICTIONARIES,
    "keys": _DICTIONARIES,
    "update": _DICTIONARIES,
    "values": f"{_DICTIONARIES}; of `max`, `sort` and `topk`: `values, indices = x.max(dim=0)`",
}
"""Methods of lists and dictionaries."""

OF_RANDOM: Final[dict[str, str]] = {
    "gauss": _NOISE,
    "normalvariate": _NOISE,
    "randint": _UNIFORM,
    "random": _UNIFORM,
    "randrange": _UNIFORM,
    "uniform": _UNIFORM,
}
"""Functions of Python's module `random`."""

OF_BUILTINS: Final[dict[str, str]] = {
    "dict": _DICTIONARIES,
    "divmod": "write `a // b, a % b`",
    "getattr": "write `x.name`",
    "set": "use a list",
}
"""Python's own functions that are not in the language."""

_MODES: Final = "leave it out: gradients are computed only where `relay.grad` asks for them"

CONTEXTS: Final = {
    "enable_grad": _MODES,
    "inference_mode": _MODES,
    "no_grad": _MODES,
    "set_grad_enabled": _MODES,
}
"""Functions of torch that stand after `with`."""

_COMPILE: Final = "`@relay` above a function compiles it"
_LOOP: Final = "write a loop: `for`, or `while`"
_LAYERS: Final = "layers are operators: `relay.linear(x, out_features=10)` under @relay_model"
_CELLS: Final = "`rnn_cell`, `gru_cell` and `lstm_cell` are models of `pyrelay.models.recurrent`"
_JACOBIAN: Final = "write `relay.jacrev(f)(x)`, or `relay.jacfwd(f)(x)`"

OF_NAMESPACES: Final[dict[str, str]] = {
    **CONTEXTS,
    "Adam": _OPTIMIZERS,
    "AdamW": _OPTIMIZERS,
    "Module": "a model is a function under @relay_model",
    "PRNGKey": "write `relay.random.key(0)`",
    "SGD": _OPTIMIZERS,
    "Sequential": "call one after the other: `relay.linear(relay.relu(x), out_features=10)`",
    "Tensor": _DATA,
    "array": _NUMBERS,
    "as_tensor": _NUMBERS,
    "backward": _GRADIENTS,
    "bernoulli": _NOISE,
    "clone": "values never change: leave it out",
    "cdist": "write `relay.sqrt(((x[:, None] - y[None]) ** 2).sum(dim=-1))`",
    "compile": _COMPILE,
    "cond": "write `a if c else b`",
    "device": _DEVICES,
    "fori_loop": _LOOP,
    "from_numpy": _DATA,
    "gru_cell": _CELLS,
    "lstm_cell": _CELLS,
    "rnn_cell": _CELLS,
    "functional": _LAYERS,
    "functional_call": "write `relay.with_params(f)(params, x)`",
    "jacobian": _JACOBIAN,
    "jit": _COMPILE,
    "lax": "control flow is Python's own: `for`, `while`, `if`",
    "load": "write `relay.load_model(path)`",
    "map_fn": "write `[f(x) for x in xs]`",
    "manual_seed": "a seed makes a key, in the script: `relay.random.key(0)`",
    "nn": _LAYERS,
    "norm": "write `relay.norm(x)`",
    "normal": _NOISE,
    "numpy": "operators have torch's names: `relay.tanh`, `relay.sum`",
    "rand": _UNIFORM,
    "rand_like": _UNIFORM,
    "randint": _UNIFORM,
    "randn": _NOISE,
    "randn_like": _NOISE,
    "save": "write `relay.export_model(model).save(path)`",
    "scan": _LOOP,
    "median": _MEDIAN,
    "t": "write `x.T`",
    "tensor": _NUMBERS,
    "while_loop": _LOOP,
}
"""Functions of torch, by name, that are no operators of the same name."""

OF_ARGUMENTS: Final[dict[str, str]] = {"axes": "dims", "axis": "dim", "keepdims": "keepdim"}
"""Names that numpy has for parameters, and torch's."""

_REDUCTION: Final = 'write `reduction="none"`, `"sum"` or `"mean"`'
_LEAVE: Final = "leave it out"
_WRT: Final = 'name the parameters: `wrt="x"`, or several, `wrt=("x", "y")`'

WITHOUT: Final = {
    "argnum": _WRT,
    "argnums": _WRT,
    "alpha": "write the product out: `x + alpha * y`",
    "as_tuple": "the positions are the rows of one tensor",
    "device": _DEVICES,
    "generator": _NOISE,
    "inplace": "tensors never change: leave it out, and give the result a name",
    "layout": _LEAVE,
    "memory_format": _LEAVE,
    "non_blocking": _LEAVE,
    "out": "give the result a name",
    "pin_memory": _LEAVE,
    "reduce": _REDUCTION,
    "requires_grad": _GRADIENTS,
    "return_indices": "write `relay.max_pool2d_with_indices(x, 2)`",
    "rounding_mode": "write `x // y` to round down, `relay.trunc(x / y)` to round towards zero",
    "scale_grad_by_freq": _LEAVE,
    "size_average": _REDUCTION,
    "sparse": _LEAVE,
}
"""Arguments of torch that no operator has."""
