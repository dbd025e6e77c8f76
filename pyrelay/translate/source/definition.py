"""Definitions: the Python functions that programs are made of.

A decorated function carries its `Definition` in the attribute `__relay__`; a function that a script
derives from it with `relay.grad` carries a `DerivedFunction`. Both are compared by identity and
read nothing until they are asked: names are resolved when a program is translated, not when it is
written.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import cached_property
from pickle import PicklingError
from types import CodeType, FrameType, FunctionType, GenericAlias
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.diagnostic import CheckError
from ...ir.expr import Differentiation, Options, Rule
from ...ir.op import Op
from ...ir.transforms import NARROW
from ..subset.constructs import mistakes
from .flow import all_statements, bound_by, locals_of, nested_in, parameters_of
from .residual import Residual
from .rewriting import rewritten
from .source import FunctionSource, load_source
from .unions import names_data

if TYPE_CHECKING:
    from .optimizers import OptimizerUse

StaticValue: TypeAlias = "int | float | bool | str | tuple[StaticValue, ...] | OptimizerUse | None"
"""The values that a static parameter may have."""


class DefinitionKind(Enum):
    """The kind of a decorated function."""

    FUNCTION = "function"
    MODEL = "model"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Owner:
    """The frozen dataclass that a function is a method of."""

    name: str
    """The name of the class, or that of the union among whose classes the instance chooses."""
    cls: type
    names: Mapping[str, Any]
    """The names that annotations in the class may mention besides those around the function."""
    takes_self: bool
    """Whether the first parameter is an instance, whose type needs no annotation."""
    takes_class: bool
    """Whether the first parameter is the class."""
    choices: tuple[tuple[type, Definition | None], ...] = ()
    """The classes among which the instance chooses, each with its method, or with None where a
    field stands for a property."""


@final
@dataclass(frozen=True, slots=True)
class UserRules:
    """A derivative that the user writes: the functions that a transform calls instead of looking
    into the function."""

    rule: Rule
    functions: tuple[Definition | Residual, ...] = ()
    policy: tuple[str, ...] = ()
    """The policy of a checkpoint, or that of `autocast`."""


POLICIES: Final = {
    Rule.CHECKPOINT: 'None, "products", or the names of values',
    Rule.AUTOCAST: " or ".join(f'"{name}"' for name in NARROW),
}
"""The policies that transforms take, in words."""

DEFAULT_POLICY: Final = {Rule.CHECKPOINT: None, Rule.AUTOCAST: NARROW[0]}


def policy_names(rule: Rule, value: object) -> tuple[str, ...] | None:
    """Return the policy of a transform as names; None for any other value."""
    if rule is Rule.AUTOCAST:
        return (value,) if isinstance(value, str) and value in NARROW else None
    names = () if value is None else value if isinstance(value, tuple | list) else (value,)
    found = tuple(n for n in names if isinstance(n, str))
    return found if len(found) == len(names) else None


@final
class Definition:
    """A Python function that was decorated with `@relay` or `@relay_model`, or a method of a frozen
    dataclass."""

    def __init__(
        self,
        function: FunctionType,
        kind: DefinitionKind,
        owner: Owner | None = None,
        rules: tuple[UserRules, ...] = (),
    ) -> None:
        self.function: Final = function
        self.kind: Final = kind
        self.owner: Final = owner
        self.rules: Final = rules
        """From the inside out."""
        self._ruled: Final[dict[UserRules, Definition]] = {}
        name = function.__name__
        self.name: Final = name if owner is None else f"{owner.name}.{name}"
        self.around: Final = self._annotation_names() if owner is None else owner.names
        """Names of the enclosing function that only annotations mention, so it captures none."""

    def __repr__(self) -> str:
        return f"<relay {self.kind.value} {self.name}>"

    def ruled(self, rules: UserRules) -> Definition:
        """Return the same function with a derivative of its own or under a policy, once."""
        if rules not in self._ruled:
            all_rules = (*self.rules, rules)
            made = Definition(self.function, self.kind, self.owner, all_rules)
            return self._ruled.setdefault(rules, made)
        return self._ruled[rules]

    @property
    def place(self) -> tuple[str, str]:
        """The module and the name by which it is pickled, as functions are. Raises PicklingError
        where they lead to something else."""
        module, name = self.function.__module__, self.function.__qualname__
        if meaning(named(module, name)) is not self:
            raise PicklingError(
                f"`{name}` of {module} is pickled by its name, which means something else there: "
                "define it at the top of a module, or pickle `relay.export_model(model)`"
            )
        return module, name

    def __reduce__(self) -> Any:
        return _definition_named, self.place

    @cached_property
    def source(self) -> FunctionSource:
        """The text and the syntax tree, checked to be the language.

        Raises CheckError when it cannot be found, has changed, or holds what is not allowed.
        """
        source = load_source(self.function, is_method=self.owner is not None)
        node = rewritten(source.node)
        found = mistakes(source.file, node)
        if found:
            raise CheckError(*found)
        return replace(source, node=node)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """The names local to the function or to one nested in it."""
        node = self.source.node
        return frozenset[str]().union(*map(locals_of, (node, *nested_in(node))))

    @cached_property
    def local_functions(self) -> dict[str, ast.FunctionDef]:
        """The nested functions that are all that their names ever mean."""
        node = self.source.node
        counts = Counter(n for s in all_statements(node.body) for n in bound_by(s))
        counts.update(p for f in (node, *nested_in(node)) for p in parameters_of(f))
        return {f.name: f for f in nested_in(node) if counts[f.name] == 1}

    def _annotation_names(self) -> dict[str, Any]:
        """Return the names that annotations mention and the enclosing function binds, and the
        classes and aliases there, which belong to data types.

        Where a function is defined inside another one, Python keeps no reference to what only its
        annotations name; the frame that runs the `def` still has them.
        """
        frame = _frame_of(self.function) if "<locals>" in self.function.__qualname__ else None
        if frame is None:
            return {}
        try:
            words = _annotation_words(self.source.node)
        except CheckError:  # reported where the source is read
            return {}
        return {n: v for n, v in frame.f_locals.items() if n in words or names_data(v)}


def named(module: str, name: str) -> Any:
    """Return the value of a name in a module, None if it has none."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _definition_named(module: str, name: str) -> Any:
    return meaning(named(module, name))


@final
@dataclass(frozen=True, slots=True, eq=False)
class DerivedFunction:
    """A function that a transform makes of another, such as `relay.grad(f, wrt="x")`.

    `wrt` names the parameters of its base that the options mean by their indices; None leaves them
    as they are.
    """

    rule: Rule
    base: Definition | DerivedFunction
    options: Options
    wrt: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """The name of the function in a module."""
        rules: list[str] = []
        base: Definition | DerivedFunction = self
        while isinstance(base, DerivedFunction):
            rules.append(base.rule.value)
            base = base.base
        return ".".join((*rules, base.name))

    @property
    def definition(self) -> Definition:
        """The definition at the bottom."""
        base: Definition | DerivedFunction = self
        while isinstance(base, DerivedFunction):
            base = base.base
        return base


@final
@dataclass(frozen=True, slots=True)
class MadeFunction:
    """A function that a call of a relay function returned, by its maker: the static arguments of
    the call, and the functions that it was passed. Its other arguments are values."""

    maker: Definition
    statics: tuple[tuple[str, StaticValue], ...]
    functions: tuple[tuple[str, PassedFunction], ...]


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """The default of a parameter that a call of a transform leaves out."""


PassedFunction: TypeAlias = Definition | DerivedFunction | Op | MadeFunction | Residual
"""A relay function that a script passes."""


@final
@dataclass(frozen=True, slots=True)
class PassedTuple:
    """A tuple with functions that a script passes; None stands for a field that is a value."""

    fields: tuple[PassedFunction | PassedTuple | None, ...]


InPlace: TypeAlias = PassedFunction | PassedTuple | LeftOut
"""What stands in the program itself, in the place of a parameter."""


def bottom(mentioned: Definition | DerivedFunction) -> Definition:
    """Return the definition that a function is, or that its transforms are of."""
    return mentioned if isinstance(mentioned, Definition) else mentioned.definition


def signature_of(mentioned: Definition | DerivedFunction) -> inspect.Signature:
    """Return the signature of a function, with the annotations of its definition.

    A transform takes the parameters of its function, in forward mode as a tuple beside the tuple of
    tangents. The type of its result is annotated where the annotations name it: a gradient has the
    types of the parameters it is taken in.
    """
    if isinstance(mentioned, Definition):
        return inspect.signature(mentioned.function)
    base = signature_of(mentioned.base)
    options = mentioned.options
    if not isinstance(options, Differentiation):
        return base.replace(return_annotation=_NONE)
    gradient = _gradient_annotation(mentioned, base, single=options.single)
    match mentioned.rule:
        case Rule.GRAD if not options.has_aux:
            result = gradient
        case Rule.VALUE_AND_GRAD if _NONE not in (base.return_annotation, gradient):
            result = GenericAlias(tuple, (base.return_annotation, gradient))
        case Rule.JVP | Rule.HVP:
            return inspect.Signature([_PRIMALS, _TANGENTS, *_keyword_only(base)])
        case _:
            result = _NONE
    return base.replace(return_annotation=result)


def _keyword_only(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Return the static parameters, which stay beside the tuple of the others."""
    return [p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]


def _gradient_annotation(
    mentioned: DerivedFunction, base: inspect.Signature, *, single: bool
) -> Any:
    """Return the annotation of a gradient; none where its parameters are found by inference."""
    names = mentioned.wrt or tuple(base.parameters)
    if (mentioned.wrt is None and len(names) != 1) or not base.parameters.keys() >= set(names):
        return _NONE
    found = tuple(base.parameters[n].annotation for n in names)
    return found[0] if single else GenericAlias(tuple, found)


_NONE: Final = inspect.Signature.empty
_PRIMALS: Final = inspect.Parameter("primals", inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TANGENTS: Final = inspect.Parameter("tangents", inspect.Parameter.POSITIONAL_OR_KEYWORD)


@final
@dataclass(frozen=True, slots=True)
class ModelUse:
    """Which model a program gets, in which mode, and with which static arguments; `frozen` are the
    names of the parameters that stay."""

    definition: Definition
    training: bool = False
    statics: tuple[tuple[str, StaticValue], ...] = ()
    frozen: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Implicit:
    """An implicit parameter: a value that functions mention by name, and that whoever calls them
    supplies, or takes from its own caller in turn."""

    name: str
    annotation: Any
    default: Any

    @property
    def __relay__(self) -> Implicit:
        return self

    def __repr__(self) -> str:
        return f"<relay.implicit {self.name}>"


@final
@dataclass(frozen=True, slots=True)
class Meaning:
    """The definition behind a Python object that carries a relay function."""

    __relay__: Any


def function_of(value: Any) -> Definition | DerivedFunction | Op | Residual | None:
    """Return the relay function or operator that a Python object is; None if it is none, or a model
    definition, which is called with its parameters only."""
    found = meaning(value)
    if isinstance(found, Definition) and found.kind is DefinitionKind.MODEL:
        return None
    if isinstance(found, Residual) and None in found.fixed:
        return None  # a tensor of it is an argument of each call
    return found if isinstance(found, Definition | DerivedFunction | Op | Residual) else None


def meaning(value: object) -> Any:
    """Return the meaning of a Python object to the compiler; None for an object without one."""
    return getattr(value, "__relay__", None)


def _frame_of(function: FunctionType) -> FrameType | None:
    """Return the frame that runs the `def` of a function."""
    frame = inspect.currentframe()
    while frame is not None and not _defines(frame.f_code, function.__code__):
        frame = frame.f_back
    return frame


def _defines(around: CodeType, code: CodeType) -> bool:
    """Return whether a `def` stands in some code. One with type parameters, `def f[T](...)`, stands
    in code of its own, which binds them."""
    inside = [c for c in around.co_consts if isinstance(c, CodeType)]
    return code in inside or any(
        code in c.co_consts for c in inside if c.co_name.startswith("<generic parameters of")
    )


def _annotation_words(node: ast.FunctionDef) -> frozenset[str]:
    """Return the names in the annotations of a function and of the functions inside it."""
    found: set[str] = set()
    for part in ast.walk(node):
        for field in ("annotation", "returns"):
            annotation = getattr(part, field, None)
            if isinstance(annotation, ast.expr):
                found.update(_WORD.findall(ast.unparse(annotation)))
    return frozenset(found)


_WORD: Final = re.compile(r"[^\W\d]\w*")
