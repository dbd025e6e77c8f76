"""The functions that scripts call: functions over functions, models, updates, export.

The same names inside `@relay` code are intrinsics of the language and mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from .config import current
from .diagnostics.catalogue.call import WrongCall
from .diagnostics.catalogue.model import NotAModel
from .diagnostics.diagnostic import RunError
from .diagnostics.source import NOWHERE
from .ir.expr import Batching, Differentiation, Rule
from .ir.module import Module
from .ir.op import Op
from .ir.transforms import Axes
from .ir.types import DType
from .lazy import LazyModule
from .lower_torch.constants import torch_dtype
from .prelude.values import List
from .runtime.border.devices import device_named
from .runtime.border.results import ref as ref
from .runtime.calls.api_checks import (
    Wrt,
    directions_of,
    expect_model,
    expect_seed,
    expect_sizes,
    names_of,
)
from .runtime.calls.function import RelayModel
from .runtime.calls.programs import eval_program
from .runtime.calls.specialised import Specialised
from .runtime.calls.specialised import specialise as specialised
from .runtime.calls.specialised_of_models import SpecialisedOfModels
from .runtime.calls.updates import update
from .runtime.models.bound import PureFunction, Request, place_of, request, runner_of
from .runtime.models.create import create
from .runtime.models.model import Model
from .runtime.models.optim import Optimizer
from .runtime.models.records import Grads, Params
from .runtime.values.constant import const as const
from .runtime.values.structure import map_reals, reals, skeleton
from .runtime.values.text import describe
from .translate.models.axes import is_axes
from .translate.source.definition import meaning
from .translate.source.unions import is_data_class

if TYPE_CHECKING:
    from .runtime.interop import export
    from .runtime.texts import text_module
else:
    export = LazyModule("pyrelay.runtime.interop.export")
    text_module = LazyModule("pyrelay.runtime.texts.text_module")

Models = Model | Sequence[Model]


def grad(f: Any, *rest: Any, wrt: Wrt = None, has_aux: bool = False, **implicit: Any) -> Any:
    """Return the gradient of a function, as a function; or of a loss in a model's parameters.

    `grad(f, wrt=...)`: with `f: A -> Float`, the function `A -> A` at the parameters that `wrt`
    names; by default all with floats. One has a bare gradient, several have a tuple. A gradient has
    the shape and dtype of its parameter; `wrt` may be passed by place.
    `grad(model, loss, args)`: the gradient of `loss(*args)` in the parameters of the model, as a
    `Grads` mapping; for several models in a tuple, a tuple. `args` is a tuple or a list; a value
    that is neither is the only argument; implicit values are passed by name. Raises CheckError.
    """
    if _is_models(f, Rule.GRAD, rest):
        return _of_models(_GRAD, f, rest, implicit, has_aux=has_aux)
    _expect_no_values(Rule.GRAD, implicit)
    return _derived(Rule.GRAD, f, names_of(Rule.GRAD, rest, wrt), has_aux=has_aux)


def value_and_grad(
    f: Any, *rest: Any, wrt: Wrt = None, has_aux: bool = False, **implicit: Any
) -> Any:
    """Return the value together with the gradient: `(value, gradient)`. Else as `grad`."""
    if _is_models(f, Rule.VALUE_AND_GRAD, rest):
        return _of_models(_VALUE_AND_GRAD, f, rest, implicit, has_aux=has_aux)
    _expect_no_values(Rule.VALUE_AND_GRAD, implicit)
    return _derived(
        Rule.VALUE_AND_GRAD, f, names_of(Rule.VALUE_AND_GRAD, rest, wrt), has_aux=has_aux
    )


def vjp(f: Any, wrt: Wrt = None) -> Any:
    """Return the function `A -> (B, pullback)`: the pullback maps a cotangent of the result to the
    cotangents of the parameters that `wrt` names, each with the shape and dtype of its value.

    The gradient is made as a program: see Pearlmutter and Siskind, "Reverse-mode AD in a functional
    framework", 2008, and Wang et al., "Demystifying differentiable programming", 2019. Raises
    CheckError.
    """
    return _derived(Rule.VJP, f, wrt, has_aux=False)


def jvp(f: Any, *rest: Any, wrt: Wrt = None, has_aux: bool = False, **implicit: Any) -> Any:
    """Return the derivative of a function in a direction, as a function; or of a loss, in a
    direction of a model's parameters.

    `jvp(f, wrt=...)`: with `f: A -> B`, the function `(primals, tangents) -> (value, tangent)` of
    two tuples. `primals` are the arguments of `f`, `tangents` one direction for each parameter that
    `wrt` names, by default for all with floats, of its shape and dtype. The tangent has the form of
    the value: of data the same data, with zeros for integers. With `has_aux`, `f` returns
    `(value, aux)`, and the result is `(value, tangent, aux)`. The program runs forward, once, and
    keeps nothing: see Wengert, "A simple automatic derivative evaluation program", 1964, and
    Siskind and Pearlmutter, "Perturbation confusion and referential transparency", 2005.
    `jvp(model, f, args, v)`: the value and the tangent of `f(*args)` as the parameters of the model
    move along `v`, a mapping like gradients; for several models in a tuple, a tuple. Raises
    CheckError.
    """
    if _is_models(f, Rule.JVP, rest):
        return _of_models(_JVP, f, rest, implicit, has_aux=has_aux)
    _expect_no_values(Rule.JVP, implicit)
    return _derived(Rule.JVP, f, names_of(Rule.JVP, rest, wrt), has_aux=has_aux)


def vmap(f: Any, in_axes: Axes = 0, out_axes: Axes = 0) -> Any:
    """Return the function that calls `f` once for each element of a batch, in one call.

    `in_axes` has the dim of each argument that counts the elements, from either end: one for all
    parameters or a tuple with one each; None for an argument that is the same in every call. An
    axis of a tuple is that of all its tensors; a tuple of axes has one for each field. `out_axes`
    has the dim in the result; None for a result that is the same for every element. With
    `f: (A...) -> B` and a batch of size N, a tensor of shape (*s) at axis 0 has shape (N, *s), of
    the same dtype.

    The function is mapped as a program, as `jax.vmap` and `torch.func.vmap` map it: one call of
    each operator serves all elements. Raises CheckError.
    """
    if not isinstance(f, text_module.ModuleFunction | Specialised | PureFunction):
        runner_of(f, "relay.vmap")
    for name, value in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not is_axes(value):
            why = f"takes an axis, None, or a tuple of such as `{name}`, not {value!r}"
            raise RunError(WrongCall("relay.vmap", NOWHERE, why, f"relay.vmap(f, {name}=0)"))
    return f.transformed(Rule.VMAP, Batching(in_axes, out_axes))


def hvp(f: Any, *rest: Any, wrt: Wrt = None, **implicit: Any) -> Any:
    """Return products of a Hessian with vectors, as a function; or of a loss in a model's
    parameters.

    `hvp(f, wrt=...)`: with `f: A -> Float`, the function `(primals, tangents) -> product` of two
    tuples, the arguments of `f` and a direction for each parameter that `wrt` names, by default for
    all with floats. The product has the form of the gradient. It is the derivative of the gradient
    in the direction, at a few times the cost of the gradient, and no Hessian is made: see
    Pearlmutter, "Fast exact multiplication by the Hessian", 1994.
    `hvp(model, loss, args, v)`: the product in the parameters of the model, as a `Grads` mapping,
    with `v` a mapping like gradients; for several models in a tuple, a tuple. Raises CheckError.
    """
    if _is_models(f, Rule.HVP, rest):
        return _of_models(_HVP, f, rest, implicit, has_aux=False)
    _expect_no_values(Rule.HVP, implicit)
    return _derived(Rule.HVP, f, names_of(Rule.HVP, rest, wrt), has_aux=False)


def hessian(f: Any, wrt: Wrt = None) -> Any:
    """Return the Hessian of a function of one result, as a function of the same arguments.

    For a parameter of shape `s` it has the shape `(*s, *s)`; for several parameters, tuples or data
    it has their form twice, as a jacobian has. It is the jacobian, in forward mode, of the
    gradient. Raises CheckError.
    """
    return _derived(Rule.HESSIAN, f, wrt, has_aux=False)


def jacfwd(f: Any, wrt: Wrt = None) -> Any:
    """Return the jacobian of a function, in forward mode, as a function of the same arguments.

    For a value of shape `t` and a parameter of shape `s` it has the shape `(*t, *s)`; of tuples and
    data it has the form of the value, with that of the parameters in place of each tensor. The
    directions of all elements of the parameters are pushed forward at once: for functions that give
    more than they take. Raises CheckError for data whose type cannot show the shapes.
    """
    return _derived(Rule.JACFWD, f, wrt, has_aux=False)


def jacrev(f: Any, wrt: Wrt = None) -> Any:
    """Return the jacobian of a function, in reverse mode, as a function of the same arguments.

    As `jacfwd`, but the cotangents of all elements of the value are pulled back at once: for
    functions that take more than they give. Raises CheckError.
    """
    return _derived(Rule.JACREV, f, wrt, has_aux=False)


def linearize(f: Any, wrt: Wrt = None) -> Any:
    """Return the function `A -> (B, linear)`: the value, and the derivative there as a function of
    directions, one for each parameter that `wrt` names, by default of all with floats.

    `linear(*tangents)` gives the tangent that `jvp` gives, and runs nothing of `f` again: what it
    needs is computed once, with the value. The pullback is transposed, the other way round than in
    Radul, Paszke, Frostig, Johnson and Maclaurin, "You only linearize once", POPL 2023. Raises
    CheckError.
    """
    return _derived(Rule.LINEARIZE, f, wrt, has_aux=False)


def specialise(
    f: Any, /, *, fast_math: bool | None = None, **static: Any
) -> Specialised | SpecialisedOfModels:
    """Return a relay function without the parameters that are fixed: `specialise(f, n=3)(x)` has
    the value of `f(x, n=3)`, and its program is what is left of that of `f`.

    Fixed can be numbers, bools, strings, tensors, tuples, lists, data and relay functions. What
    they decide is run once, here: branches, matches, loops of known length, calls of functions that
    are passed. Tensors of more than a kilobyte, or that require a gradient, are not copied into the
    program. Fixed to the same numbers, texts, functions and data again, it is the same function.
    With `fast_math`, a sum with zero is its other operand: -0.0 becomes 0.0 in places.
    Raises CheckError for a name that is no parameter and for what cannot be fixed, RunError
    for a value of another type.
    """
    if isinstance(f, text_module.ModuleFunction | Specialised):
        return f.with_fixed(static, fast_math=fast_math)
    runner_of(f, "relay.specialise")
    return specialised(f.__relay__, static, f.specialised, fast_math=fast_math)


def _derived(rule: Rule, f: Any, wrt: Wrt, *, has_aux: bool) -> Any:
    names = (wrt,) if isinstance(wrt, str) else wrt
    options = Differentiation(single=names is None or isinstance(wrt, str), has_aux=has_aux)
    if isinstance(f, PureFunction):
        return f.transformed(rule, options)
    if not isinstance(f, text_module.ModuleFunction | Specialised):
        runner_of(f, f"relay.{rule.value}")
    return f.transformed(rule, options, names)


def _is_models(f: Any, rule: Rule, rest: tuple[Any, ...]) -> bool:
    """Return whether a transform is asked for in parameters of models. Raises RunError where a
    definition stands for one."""
    if isinstance(f, Model):
        return True
    if isinstance(f, export.Exported):
        what, way = f"relay.{rule.value} takes a model", "differentiate the model it was made of"
        raise RunError(NotAModel(what, "an exported one, whose weights are fixed", way))
    if isinstance(f, RelayModel) and rest and not isinstance(rest[0], str | tuple):
        expect_model(f, f"relay.{rule.value}")
    return isinstance(f, tuple | list) and bool(f) and all(isinstance(m, Model) for m in f)


def _expect_no_values(rule: Rule, implicit: Mapping[str, Any]) -> None:
    """Stop where a transform of a function is given implicit values. Raises TypeError."""
    for name in implicit:
        raise TypeError(f"{rule.value}() got an unexpected keyword argument {name!r}")


def _requests(rule: Rule) -> Mapping[tuple[bool, bool], Request]:
    """Return the requests for a transform: in one model alone or not, and with `has_aux` or not."""
    flags = (False, True)
    return {(s, a): request(rule, Differentiation(None, s, a)) for s in flags for a in flags}


_GRAD = _requests(Rule.GRAD)
_VALUE_AND_GRAD = _requests(Rule.VALUE_AND_GRAD)
_JVP = _requests(Rule.JVP)
_HVP = _requests(Rule.HVP)


def _of_models(
    requests: Mapping[tuple[bool, bool], Request],
    models: Models,
    rest: Sequence[Any],
    implicit: Mapping[str, Any],
    *,
    has_aux: bool,
) -> Any:
    is_single = isinstance(models, Model)
    wanted = requests[is_single, bool(has_aux)]
    takes_tangents = wanted.rule.takes_tangents
    if len(rest) not in ((3,) if takes_tangents else (1, 2)):
        name, more, v = _named(wanted), " and its arguments", ""
        if takes_tangents:
            more, v = ", its arguments and a direction", ", v"
        what = f"{name} takes a model, a function{more}"
        way = f"{name}(model, loss, (x, y){v})"
        raise RunError(NotAModel(what, f"{len(rest) + 1} arguments", way))
    several = (models,) if isinstance(models, Model) else tuple(models)
    args = rest[1] if len(rest) > 1 else ()
    runner = getattr(rest[0], "runner", None) or runner_of(rest[0], _named(wanted))
    if not takes_tangents:
        return runner.of_models(wanted, several, args, implicit)
    along = rest[2:] if is_single else rest[2]  # a tuple, of one for each
    return runner.of_models(
        wanted, several, args, implicit, directions_of(several, along, _named(wanted))
    )


def _named(wanted: Request) -> str:
    return f"relay.{wanted.rule.value}"


def create_model(
    net: RelayModel[..., Any],
    *,
    seed: int = 0,
    dims: Mapping[Any, int] | None = None,
    device: str | torch.device | None = None,
    **hyper: Any,
) -> Model:
    """Return a model: an instance of a definition with parameters of its own.

    Weights start as N(0, 1/sqrt(fan in)), embeddings as N(0, 1), biases at 0, norm scales at 1, the
    same numbers for the same seed. `dims` has sizes that the definition leaves open; `hyper` its
    keyword-only static parameters. Raises CheckError, RunError.
    """
    if not isinstance(net, RelayModel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RunError(
            NotAModel(
                "relay.create_model takes a function decorated with @relay_model",
                describe(net),
                "decorate the network with @relay_model",
                place_of(net),
            )
        )
    expect_seed(seed)
    expect_sizes(dims)
    where = device if device is not None else current().device
    return create(net.runner, seed, dims or {}, hyper, device_named(where or "cpu"))


def update_model_params(
    model: Models,
    grads: Grads | Mapping[str, torch.Tensor] | Sequence[Any],
    lr: float | None = None,
    *,
    optimizer: torch.optim.Optimizer | Optimizer | None = None,
) -> None:
    """Move the parameters of a model against a gradient, in place: the one mutation. Parameters
    that require no gradient (`p.requires_grad_(False)`) stay; of a list of models each is moved by
    its gradient. A gradient is a mapping by name, or the nested tuple that a program returns.

    `optimizer` takes one of `relay.optim`, whose learning rate `lr` replaces for this update, or a
    `torch.optim` optimiser over `model.parameters()`; without one, `lr` is that of plain descent.
    An update, of all models of a list, is whole or does not happen, an interrupted one too; a step
    of `torch.optim` that raises an error is as torch leaves it. Raises RunError.
    """
    several = isinstance(model, list | tuple)
    update(model if several else [model], grads if several else [grads], lr, optimizer)


def sgd(params: Any, grads: Any, lr: float) -> Any:
    """Return parameters after one step of SGD; nothing is changed in place.

    `params` are a `Params` record, a tensor, or a tuple of these, and `grads` of the same form and
    shapes. Raises ValueError for tuples of different lengths.
    """
    if isinstance(params, Model):
        way = "write relay.sgd(model.params, grads, lr), or update_model_params(model, grads, lr)"
        raise RunError(NotAModel("relay.sgd takes parameters", "the model itself", way))
    if isinstance(params, tuple):
        pairs = zip(params, grads, strict=True)
        return tuple(sgd(p, g, lr) for p, g in pairs)
    return params.descended(grads, lr) if isinstance(params, Params) else params - grads * lr


def with_params(f: Any) -> Any:
    """Return a pure function of a model's parameters: `with_params(f)(params, *args)`, where the
    first argument is a `Params` record of the one model that `f` mentions. Raises RunError
    for a function that is not decorated with @relay, or, at the call, for other parameters."""
    return PureFunction(f)


def export_model(model: Model) -> export.Exported:
    """Return the model as a plain callable in eval mode over a frozen copy of its weights. Raises
    RunError."""
    expect_model(model, "relay.export_model")
    return export.Exported.of(model, eval_program(model.blueprint))


def load_model(
    path: str | Path, *, device: str | torch.device | None = None, operators: Sequence[Any] = ()
) -> export.Exported:
    """Return the model that `export_model(...).save(path)` wrote, as the same callable.

    Needs neither the source nor its packages, and runs no code of the file. `operators` are those
    of `@relay.operator` that the program calls. Raises CheckError for a file that is cut, changed,
    of a newer version or no saved model, and OSError for one that cannot be read.
    """
    where = device if device is not None else current().device
    own = {op.name: op for op in map(meaning, operators) if isinstance(op, Op)}
    return export.load_bytes(Path(path).read_bytes(), str(path), device_named(where or "cpu"), own)


def parse(source: str | Path, name: str = "<text>") -> text_module.RelayModule:
    """Return the module of a text, whose functions run. Raises CheckError."""
    return text_module.parse(source, name)


def function(
    module: text_module.RelayModule | Module, name: str = "main"
) -> text_module.ModuleFunction:
    """Return a function of a module that was parsed or built, to be called. Raises KeyError."""
    return (text_module.RelayModule(module) if isinstance(module, Module) else module)[name]


def stop_gradient(x: Any) -> Any:
    """Return a value of any type, each tensor in it detached."""
    if isinstance(x, torch.Tensor):
        return x.detach()
    if isinstance(x, tuple | list | Params | Grads | List) or is_data_class(type(x)):
        return tree_map(stop_gradient, x)
    return x


def tensor(data: Any, dtype: Any = None) -> torch.Tensor:
    """Return a tensor of numbers in nested lists, as `torch.tensor`: int64, float32 or bool unless
    `dtype`, one of pyrelay's or of torch's, says otherwise. Raises ValueError for rows of different
    lengths."""
    named = meaning(dtype)
    return torch.tensor(data, dtype=torch_dtype(named) if isinstance(named, DType) else dtype)


def tree_map(f: Any, tree: Any, *more: Any) -> Any:
    """Return a tree of `f` applied to the leaves of trees of one structure: tensors and numbers in
    tuples, `Params` and `Grads`; tensors and floats in lists and in values of data types, whose
    integers and texts stay. Raises RunError or ValueError for trees of different structures."""
    if isinstance(tree, Params | Grads):
        return tree.map(f, *more)
    if isinstance(tree, tuple):
        for other in more:
            if not isinstance(other, tuple) or len(other) != len(tree):
                raise _unlike(tree, other)
        return tuple(tree_map(f, *parts) for parts in zip(tree, *more, strict=True))
    if isinstance(tree, list | List) or is_data_class(type(tree)):
        return _map_data(f, tree, more)
    return f(tree, *more)


def _map_data(f: Any, tree: Any, more: tuple[Any, ...]) -> Any:
    """Return a list or a value of a data type with its tensors and floats changed, at any depth."""
    own, found = skeleton(tree), reals(tree)
    rest = [reals(other) for other in more]
    for other, there in zip(more, rest, strict=True):
        if skeleton(other) != own or len(there) != len(found):
            raise _unlike(tree, other)
    others = [iter(there) for there in rest]
    return map_reals(tree, lambda real: f(real, *map(next, others)))


def _unlike(tree: Any, other: Any) -> RunError:
    what = "relay.tree_map takes trees of one structure"
    actual = f"{describe(tree)} and {describe(other)}"
    if describe(tree) == describe(other):
        actual = f"two of {describe(tree)} with different parts"
    return RunError(NotAModel(what, actual, "map over equal trees"))


def param(*args: Any, **attributes: Any) -> NoReturn:
    """Return a parameter of a model, `relay.param(shape, init="normal", name="...")`, in the code
    of its definition; a script has no model to give it to. Raises RunError."""
    why = "gives a parameter to the model in whose definition it stands, under @relay_model"
    raise RunError(WrongCall("relay.param", NOWHERE, why))


def layers(count: int) -> Sequence[int]:
    """Return `range(count)`; in a model definition, each round gets parameters of its own."""
    return range(count)
