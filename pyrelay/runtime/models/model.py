"""Models: instances of a model definition, as torch modules.

A `Model` is an `nn.Module` whose parameters are named after the call sites of the source, so
optimisers, `state_dict`, `.to()` and `copy.deepcopy` are torch's own. The program reads them as a
nested tuple; state lives in cells that a training call updates.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeAlias

import torch
from torch import nn

from ...diagnostics.catalogue.model import ChangedParameter, FixedSite
from ...diagnostics.diagnostic import RunError
from ...ir.op import HiddenKind, Library
from ...ir.types import DType, TensorType
from ...lower_torch.constants import torch_dtype
from ...operators.composite.model import KEY_INIT, initial
from ...translate.source.definition import named
from ..values.likeness import Likeness
from ..values.values import Cell
from .bound import BoundFunction, Running
from .commit import Change, storing
from .model_layout import Blueprint, Home, Kind, Leaf, Mode
from .records import Params
from .site import Holder as Module

_CALLED: Final = (
    "call the operator with the parameters: `relay.linear(x, model.linear_1.weight)`; a model "
    "inside the model can be called"
)
_HOOKED: Final = "register the hook of the whole model, or of a parameter: `p.register_hook(f)`"


_Slot: TypeAlias = tuple[dict[str, torch.Tensor], str]


class Model(Module):
    """A model: the parameters and state of one definition.

    Make one with `relay.create_model`. Calling it runs the definition in the module's mode.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        runner: Running,
        params: list[torch.Tensor],
        state: list[torch.Tensor],
    ) -> None:
        super().__init__((blueprint.name, ""))
        self.blueprint = blueprint
        self._shared = _Shared(runner)
        for leaf, value in zip(blueprint.params, params, strict=True):
            module, name = self._place(leaf)
            module.register_parameter(name, nn.Parameter(value, value.is_floating_point()))
            module.made[name] = (value.dtype, value.shape)
        for leaf, value in zip(blueprint.state, state, strict=True):
            module, name = self._place(leaf)
            # torch's own modules keep no random keys, and state dicts must fit theirs.
            module.register_buffer(name, value, persistent=leaf.spec.holder is not HiddenKind.KEY)
            module.made[name] = (value.dtype, value.shape)
        self.find_slots()
        for name, module in self.named_modules():
            if isinstance(module, Module):
                module.seal()
            if isinstance(module, Site):
                part = blueprint.parts.get(name)
                module.part = None if part is None else (part, self._shared)

    def find_slots(self) -> None:
        """Find where torch keeps the parameters and the state."""
        blueprint = self.blueprint
        self._param_slots = [self._slot(leaf, "_parameters") for leaf in blueprint.params]
        self._state_slots = [self._slot(leaf, "_buffers") for leaf in blueprint.state]
        leaves = (*blueprint.params, *blueprint.state)
        slots = zip(leaves, (*self._param_slots, *self._state_slots), strict=True)
        self.tables = list({leaf.table: table for leaf, (table, _) in slots}.values())
        """Where the parameters and the state are, for `Blueprint.read`."""
        self._made = [module.made[name] for module, name in map(self._place, leaves)]
        self.shapes = [shape for _, shape in self._made[: len(blueprint.params)]]
        """The shapes of the parameters in program order."""
        self._checked = Likeness()
        self._kinds: tuple[Kind, Kind] | None = None
        """Its kinds in eval mode and in train mode, as long as its tensors are alike."""

    def _place(self, leaf: Leaf) -> tuple[Module, str]:
        """Return the submodule that holds a value, made if need be, and its name there."""
        *path, name = leaf.name.split(".")
        module: Module = self
        for depth, part in enumerate(path):
            if not hasattr(module, part):
                inside = ".".join(path[: depth + 1])
                module.add_module(part, Site((self.blueprint.name, inside)))
            inner = module.get_submodule(part)
            assert isinstance(inner, Module)
            module = inner
        return module, name

    def _slot(self, leaf: Leaf, kind: str) -> _Slot:
        """Return where torch keeps a value: its own table, which `.to()` and loading write to."""
        module, name = self._place(leaf)
        return module.__dict__[kind], name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model: its hooks, those of all modules, and `forward`."""
        own = self.__dict__  # reading attributes of modules takes five times as long
        if (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or _FORWARD_HOOKS
            or _FORWARD_PRE_HOOKS
            or _BACKWARD_HOOKS
            or _BACKWARD_PRE_HOOKS
            or "_compiled_call_impl" in own
            or "forward" in own
            or type(self) is not Model
            or _tracing() is not None
        ):
            return super().__call__(*args, **kwargs)
        return own["_shared"].runner.call((self,), args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on arguments of its definition."""
        return self._shared.runner.call((self,), args, kwargs)

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        return f"<model of {self.blueprint.name}, {count:,} parameters>"

    @property
    def params(self) -> Params:
        """The parameters as an immutable record, shared with the model until it is updated."""
        return Params(self.home, self.params_tree())

    @property
    def home(self) -> Home:
        """The link from a record of this model's tensors back to it."""
        own = self.__dict__
        frozen = self.frozen
        if not frozen and not own["_state_slots"]:
            return own["blueprint"].stateless_home[own["training"]]
        state = tuple([table[name] for table, name in self._state_slots])
        return Home(self.blueprint, self.training, state, frozen)

    @property
    def mode(self) -> Mode:
        """The facts about the model that select a program."""
        return self.blueprint, self.training, self.frozen

    @property
    def frozen(self) -> frozenset[str]:
        """The names of the parameters that require no gradient: no update moves them."""
        params = self.flat_params()
        if False not in map(_requires_grad, params):
            return _NONE
        names = self.blueprint.param_names
        return frozenset(n for n, p in zip(names, params, strict=True) if not p.requires_grad)

    @property
    def is_trainable(self) -> bool:
        """Whether a parameter requires grad."""
        return True in map(_requires_grad, self.flat_params())

    def seen(self) -> tuple[Kind, list[torch.Tensor]]:
        """Return the kind of the model, and its parameters and state in program order. Raises
        RunError where a script has changed one to what the program was not compiled for."""
        tensors = self.blueprint.read(self.tables)
        if self._kinds is None or not self._checked.holds(tensors):
            self._check(tensors)
            self._kinds = self._found_kinds(tensors[: len(self._param_slots)])
        return self._kinds[self.training], tensors

    def _found_kinds(self, params: list[torch.Tensor]) -> tuple[Kind, Kind]:
        first = (params[0].dtype, params[0].device) if params else ()
        facts = (*map(_requires_grad, params), *first)
        is_trainable = any(map(_requires_grad, params))
        kind = partial(self.blueprint.kind, is_trainable=is_trainable)
        return kind((False, *facts)), kind((True, *facts))

    def flat_params(self) -> list[torch.Tensor]:
        """Return the parameters in program order."""
        return [table[name] for table, name in self._param_slots]

    def params_tree(self) -> tuple[Any, ...]:
        """Return the parameters as the program's nested tuple. Raises RunError where a script has
        changed one to what the program was not compiled for."""
        tensors = self.blueprint.read(self.tables)
        if not self._checked.holds(tensors):
            self._check(tensors)
            self._kinds = None
        return self.blueprint.params_tree(tensors)

    def _check(self, tensors: list[torch.Tensor]) -> None:
        """Stop unless the parameters and the state have the shapes they were made with, and dtypes
        and a device in common: compiled code reads their memory by these. Raises RunError."""
        leaves = (*self.blueprint.params, *self.blueprint.state)
        first = tensors[0] if tensors else None
        for leaf, tensor, (dtype, shape) in zip(leaves, tensors, self._made, strict=True):
            assert first is not None
            # A conversion of the whole model is refused by the function that is called.
            same = tensor.dtype is dtype or first.dtype is not self._made[0][0]
            if same and tensor.shape == shape and tensor.device == first.device:
                continue
            now = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
            made = f"{tuple(shape)} of {dtype} on {first.device}"
            place = (self.blueprint.name, leaf.name, leaf.spec.span)
            raise RunError(ChangedParameter(*place, now, made))
        self._checked = Likeness(tensors)

    def state_cells(self) -> tuple[tuple[Any, ...], list[Cell]]:
        """Return the state as the program's nested tuple of cells, and the cells."""
        cells = [Cell(table[name]) for table, name in self._state_slots]
        return self.blueprint.state_tree(cells), cells

    def storing_state(self, cells: Iterable[Cell]) -> Iterator[Change]:
        """Return the changes that take over what a call has left in the cells."""
        for (table, name), cell in zip(self._state_slots, cells, strict=True):
            yield partial(table.__setitem__, name, cell.value)

    def storing_params(self, values: Iterable[torch.Tensor]) -> Iterator[Change]:
        """Return the changes that make these the values of the parameters, which stay the same
        objects."""
        for parameter, value in zip(self.flat_params(), values, strict=True):
            if parameter is not value:
                yield storing(parameter, value)

    def load_state_dict(
        self,
        state_dict: Mapping[str, Any],
        strict: bool = True,
        assign: bool = False,
        rename: Mapping[str, str] | None = None,
    ) -> Any:
        """Load parameters by name; `rename` maps names of `state_dict` to names of this model.

        The counts of batches that torch's batch norms keep are left aside.
        """
        renamed = {_rename(name, rename or {}): value for name, value in state_dict.items()}
        known = dict(self.named_buffers())
        kept = {name: value for name, value in renamed.items() if not _counts(name, known)}
        return super().load_state_dict(kept, strict, assign)

    def bind(self, function: Any) -> BoundFunction:
        """Return the function with this model as its implicit instance."""
        return BoundFunction((self,), function)


class Site(Module):
    """The parameters of one call site, or of a model inside the model."""

    part: tuple[Blueprint, _Shared] | None = None
    """The model whose parameters they are, inside of what; None for those of an operator's call."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run a model inside the model on arguments of its definition, in the mode of the part.
        Raises RunError for the site of an operator, which has no meaning of its own."""
        if self.part is None:
            raise RunError(FixedSite(*self._where, "be called", _CALLED))
        blueprint, around = self.part
        model = Model.__new__(Model)
        own = {"blueprint": blueprint, "_shared": around.of_part(blueprint)}
        model.__dict__.update(self.__dict__ | own)  # it shares the parameters
        model.find_slots()
        return model.forward(*args, **kwargs)

    def _no_hook(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse a hook, which would never fire. Raises RunError."""
        raise RunError(FixedSite(*self._where, "have hooks of its own", _HOOKED))

    register_forward_hook = _no_hook
    register_forward_pre_hook = _no_hook
    register_full_backward_hook = _no_hook
    register_full_backward_pre_hook = _no_hook
    register_backward_hook = _no_hook


class _Shared:
    """The runner of a model, which its copies share."""

    def __init__(self, runner: Running) -> None:
        self.runner: Final = runner

    def of_part(self, blueprint: Blueprint) -> _Shared:
        """Return the caller of a model inside the model."""
        return _Shared(self.runner.of_part(blueprint.spec.definition))

    def __deepcopy__(self, memo: object) -> _Shared:
        return self

    def __reduce__(self) -> Any:
        return _shared_by, (self.runner.definition.place,)


def _shared_by(place: tuple[str, str]) -> _Shared:
    return _Shared(named(*place).runner)


_modules: Any = nn.modules.module
_FORWARD_HOOKS: Final = _modules._global_forward_hooks  # noqa: SLF001
_FORWARD_PRE_HOOKS: Final = _modules._global_forward_pre_hooks  # noqa: SLF001
_BACKWARD_HOOKS: Final = _modules._global_backward_hooks  # noqa: SLF001
_BACKWARD_PRE_HOOKS: Final = _modules._global_backward_pre_hooks  # noqa: SLF001
_tracing: Final[Any] = torch._C._get_tracing_state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
_NONE: Final = frozenset[str]()
_requires_grad: Final = attrgetter("requires_grad")
_COUNT: Final = ".num_batches_tracked"
"""The end of the name under which torch's batch norms count, for a `momentum` of None alone."""


def _counts(name: str, known: Container[str]) -> bool:
    """Return whether a name of a state is that of a count of torch's, beside running statistics
    that the model has."""
    return name.endswith(_COUNT) and f"{name.removesuffix(_COUNT)}.running_mean" in known


def _rename(name: str, rename: Mapping[str, str]) -> str:
    for old, new in rename.items():
        if name == old or name.startswith(old + "."):
            return new + name[len(old) :]
    return name


def initial_value(leaf: Leaf, ty: TensorType, seed: int, device: torch.device) -> torch.Tensor:
    """Return the first value of a parameter, buffer or key: a function of the seed and the name."""
    assert isinstance(ty.dtype, DType)
    size = tuple(d.constant or 0 for d in ty.shape)
    init = KEY_INIT if leaf.spec.holder is HiddenKind.KEY else leaf.spec.init.name.lower()
    lowering = initial.lowering
    assert isinstance(lowering, Library)
    dtype = torch_dtype(ty.dtype)
    return lowering.body(torch, device, init, seed, leaf.name, size, dtype, None)
