"""Modules as objects: `relay.parse(text)`, whose functions are called like any relay function.

A function of a module runs with what it reaches alone, so that another function of the module that
is not right stands in nobody's way; `check` looks at all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from ...analysis.call_graph import reachable
from ...config import may_compile
from ...diagnostics.catalogue.call import WouldCompile, WrongCall
from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.catalogue.text import DamagedData
from ...diagnostics.diagnostic import CheckError, Report, RunError
from ...diagnostics.misspelt import nearest
from ...infer import infer
from ...ir.dims import Dim
from ...ir.expr import Differentiation, Function, Options, Rule
from ...ir.module import Module
from ...ir.traverse import free_globals
from ...ir.types import FnType, Type, TypeVar
from ...ir.verify import Stage, VerifyError, verify
from ...passes.ranks import Ranks, open_count
from ...prelude.library import LINKED
from ...prelude.relay_library import RELAY_LINKED
from ...text.dialect import RELAY, dialect_of
from ...text.json import from_json, to_json
from ...text.parser import parse_module
from ...text.printer import to_text
from ...translate.source.definition import function_of
from ...translate.source.residual import Residual
from ..border.places import Parameter
from ..border.value_types import TypesOfValues, definitions_in, type_vars_of
from ..calls.compiled import CacheInfo
from ..calls.describing import may_join
from ..calls.specialised import Specialised, residual_of, signature_by_names, with_fixed
from ..compile.derived import derive
from ..compile.inspected import Inspected
from ..compile.program import Program
from ..entries.entry import Entry
from ..entries.open_program import OpenProgram, RankReader
from ..values.representation import UserData
from .passed import Instance, Passed, instance, linked_in, passed_in
from .text_data import classes_of, data_of

Derived: TypeAlias = "tuple[Rule, Options, tuple[str, ...], tuple[ModuleFunction, ...]]"
"""How a function is a transform of another: the rule, its options, its policy, and the functions
that are its derivative."""


@final
class RelayModule(Mapping[str, "ModuleFunction"]):
    """The functions of a module by name: `module["main"](x)`. It never changes.

    `str(module)` is its text, which `relay.parse` reads back to an equal module; `module.ir` the
    module as data.
    """

    def __init__(self, module: Module) -> None:
        self.ir: Final = module
        self._made: Final[dict[str, ModuleFunction]] = {}

    def __getitem__(self, name: str) -> ModuleFunction:
        """Return the function of that name. Raises KeyError, which says what name is near."""
        if name not in self.ir.functions:
            near = nearest(name, self.ir.functions)
            known = f"did you mean {near!r}?" if near else f"it has {', '.join(self) or 'none'}"
            raise KeyError(f"the module has no function {name!r}; {known}")
        if name not in self._made:
            self._made[name] = ModuleFunction(self.ir, name, self._data)
        return self._made[name]

    @property
    def classes(self) -> Mapping[str, type]:
        """The constructors of the module's data types, as classes of values: `classes["Cons"]`."""
        return classes_of(self._data)

    @cached_property
    def _data(self) -> UserData:
        return data_of(self.ir)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ir.functions)

    def __len__(self) -> int:
        return len(self.ir.functions)

    def __str__(self) -> str:
        return to_text(self.ir)

    def __repr__(self) -> str:
        return f"<relay module of {', '.join(self) or 'no functions'}>"

    def check(self, *, strict: bool = False) -> Report:
        """Check all functions; with `strict`, refuse equations of sizes that their types do not
        imply. Raises CheckError with every mistake found."""
        if strict:
            infer(self.ir, strict=True)
        rest = self.ir
        for name in self._unused_at_any_rank():
            self[name].check()
            rest = Module({n: f for n, f in rest.functions.items() if n != name}, rest.adts)
        typed = Program(rest, "").typed
        if not typed.functions:
            return Report(())
        program = Program.of_typed(typed, next(iter(typed.functions)))
        _ = program.derived
        return Report(program.warnings)

    def _unused_at_any_rank(self) -> list[str]:
        """Return the functions of tensors of any rank that no other mentions: no use shows one."""
        used = {m for n, f in self.ir.functions.items() for m in free_globals(f) if m != n}
        open_ = (n for n, f in self.ir.functions.items() if open_count([p.ty for p in f.params]))
        return [name for name in open_ if name not in used]

    @property
    def typed(self) -> RelayModule:
        """The module after inference, every type written. Raises CheckError."""
        return RelayModule(Program(self.ir, "").typed)

    def to_json(self) -> str:
        """Return the module as JSON, which `relay.parse` reads too."""
        return to_json(self.ir)


@final
class ModuleFunction(Inspected):
    """A function of a module: call it, check it, differentiate it, look inside."""

    def __init__(
        self,
        module: Module,
        name: str,
        data: UserData,
        *,
        joins: bool = True,
        base: str | None = None,
        derived: tuple[Derived, ...] = (),
    ) -> None:
        """`data` are the classes of the module's data types; `joins` says that calls join torch's
        autograd. A function that is a transform, or one of one, says of which other, `base`, and
        how."""
        self.__name__: str = name
        self._entry_name: Final = name
        self._given: Final = reached(module, name)
        self._joins: Final = joins
        self.data: Final = data
        self._hits = 0
        self._base: Final = name if base is None else base
        self._derived: Final = derived
        self._open: Final = _type_vars(self._given.functions[self._base])
        self._instances: Final[dict[Any, tuple[Instance, ModuleFunction]]] = {}
        """The function at types and with functions that were passed."""
        self._opened: Final = OpenProgram(self._given, name, data)
        self._at: Final[dict[Ranks, ModuleFunction]] = {}
        """The function at ranks, where it takes tensors of any rank."""
        self._transforms: Final[dict[Derived, ModuleFunction]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile at the first call, and run. Raises CheckError and RunError."""
        found = self._instance_for(args, kwargs)
        if found is not None:
            return found[0](*found[1])
        if "_entry" in self.__dict__:
            self._hits += 1
        elif not may_compile():
            raise RunError(WouldCompile(self.__name__, "this is its first call"))
        return self._entry(self._bound(args, kwargs))

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """Run in the reference evaluator instead of compiled code."""
        found = self._instance_for(args, kwargs)
        if found is not None:
            return found[0].interpret(*found[1])
        return self._entry.interpret(self._bound(args, kwargs))

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}>"

    def __str__(self) -> str:
        return self.show("typed")

    def check(self) -> Report:
        """Check the function and everything it reaches. Raises CheckError."""
        _ = self.program.derived
        return Report(self.program.warnings)

    def cache_info(self) -> CacheInfo:
        """Return the compiled entries with their numbers of uses."""
        compiled = int("_entry" in self.__dict__)
        return CacheInfo(compiled, self._hits, compiled)

    def transformed(
        self, rule: Rule, options: Options, wrt: tuple[str, ...] | None = None
    ) -> ModuleFunction:
        """Return a transform of the function, such as its gradient in the parameters `wrt`, the
        same object each time."""
        names = [p.name for p in self._function.params]
        for name in wrt or ():
            if name not in names:
                signature = f"{self.__name__}({', '.join(names)})"
                why = f"has no parameter {name!r} to differentiate in"
                head = self._function.span
                raise CheckError(WrongArguments(head, self.__name__, why, signature))
        if wrt is not None:
            options = replace(options, wrt=tuple(map(names.index, wrt)))
        return self._made((rule, options, (), ()))

    def under_policy(self, rule: Rule, policy: tuple[str, ...]) -> ModuleFunction:
        """Return the function under `checkpoint` or `autocast`, the same object each time."""
        return self._made((rule, Differentiation(), policy, ()))

    def under_rules(self, rule: Rule, functions: tuple[ModuleFunction, ...]) -> ModuleFunction:
        """Return the function with a derivative of the user's own, functions of texts too."""
        return self._made((rule, Differentiation(), (), functions))

    def _made(self, how: Derived) -> ModuleFunction:
        if how not in self._transforms:
            module, data, entry = _derived(self._given, self.data, self._entry_name, how)
            self._transforms[how] = ModuleFunction(
                module,
                entry,
                data,
                joins=how[0] is not Rule.VJP,
                base=self._base,
                derived=(*self._derived, how),
            )
        return self._transforms[how]

    def with_fixed(self, static: Mapping[str, Any], *, fast_math: bool | None) -> Specialised:
        """Return the function with some arguments fixed, partially evaluated. Raises CheckError
        and RunError."""
        places = {p.name: i for i, p in enumerate(self._function.params)}
        given = {places[n]: v for n, v in static.items() if n in places}
        passed = passed_in(self._function.params, [given.get(i) for i in places.values()])
        if passed:
            found = instance(self._given, self._entry_name, self.data, {}, passed)
            made = ModuleFunction(found.module, found.entry, found.data, joins=self._joins)
            left = {n: v for n, v in static.items() if places.get(n) not in passed}
            return with_fixed(self.__name__, made.program, left, fast_math=fast_math)
        return with_fixed(self.__name__, self.program, static, fast_math=fast_math)

    def _instance_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[ModuleFunction, tuple[Any, ...]] | None:
        """Return the function at the types of its arguments and with the functions among them in
        place, where a transform has to look into them, and the arguments that are left."""
        if self._opened.is_open:
            values = self._bound(args, kwargs)
            return self._at_ranks(values), values
        if not self._open and not self._takes_functions:
            return None
        values = self._bound(args, kwargs)
        if not self._derived and not (self._joins and may_join(values)):
            return None
        params = self._given.functions[self._base].params
        own = self._own_values(values)
        given = [(p.ty, v) for p, v in zip(params, own, strict=False) if p.ty is not None]
        types = _types_of_values(self._given, self.data).solve(given, self._open)
        named = {i for _, options, *_ in self._derived for i in options.indices_named}
        passed = {i: v for i, v in passed_in(params, own).items() if i not in named}
        if not types and not passed:
            return None
        made = self._instance(types, passed)
        left = tuple(v for i, v in enumerate(own) if i not in passed)
        return made, (left, *values[1:]) if own is not values else left

    def _own_values(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of the function that this is a transform of: in forward mode they
        are one tuple."""
        is_forward = bool(self._derived) and self._derived[-1][0].takes_tangents
        return values[0] if is_forward and isinstance(values[0], tuple) else values

    @cached_property
    def _takes_functions(self) -> bool:
        params = self._given.functions[self._base].params
        return any(isinstance(p.ty, FnType) for p in params)

    def _instance(self, types: Mapping[str, Type], passed: Passed) -> ModuleFunction:
        key = (*types.items(), *((i, function_of(v)) for i, v in passed.items()))
        known = self._instances.get(key)
        if known is not None and known[0].is_valid():
            return known[1]
        found = instance(self._given, self._base, self.data, types, passed)
        module, data, name = found.module, found.data, found.entry
        kept = [i for i in range(len(self._given.functions[self._base].params)) if i not in passed]
        for rule, options, policy, rules in self._derived:
            how = (rule, options.keeping(kept), policy, rules)
            module, data, name = _derived(module, data, name, how)
        made = ModuleFunction(module, name, data, joins=self._joins)
        made.__name__ = self.__name__
        self._instances[key] = found, made
        return made

    def _at_ranks(self, values: tuple[Any, ...]) -> ModuleFunction:
        fields = _types_of_values(self._given, self.data).fields
        ranks = RankReader(self._opened.parameters, fields).ranks(values)
        if ranks not in self._at:
            program = self._opened.at(ranks)
            made = ModuleFunction(program.translated, program.entry, self.data, joins=self._joins)
            made.__name__ = self.__name__
            self._at[ranks] = made
        return self._at[ranks]

    @property
    def _function(self) -> Function:
        return self._given.functions[self._entry_name]

    @cached_property
    def __relay__(self) -> Residual | None:
        """The function as programs see it that mention it; None at no ranks in particular."""
        if self._opened.is_open:
            return None
        typed = reached(self.program.typed, self._entry_name)
        return residual_of(self.__name__, typed, self._entry_name, self.data)

    @property
    def source_text(self) -> str:
        """The text of the function and everything it reaches."""
        return to_text(self._given)

    @cached_property
    def program(self) -> Program:
        """The program of the function, at the first ranks of tensors of any rank."""
        return self._opened.first()

    @cached_property
    def _entry(self) -> Entry:
        program = self.program
        program.warn()
        parameters = tuple(
            Parameter(p.name, p.ty, p.span) for p in program.function.params if p.ty is not None
        )
        return Entry(self.__name__, program, parameters, None, joins=self._joins)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not kwargs and len(args) == len(self._function.params):
            return args
        try:
            return self._signature.bind(*args, **kwargs).args
        except TypeError as error:
            raise RunError(WrongCall(self.__name__, self._function.span, str(error))) from None

    @cached_property
    def _signature(self) -> inspect.Signature:
        return signature_by_names(self._function.params)


def reached(module: Module, entry: str) -> Module:
    """Return the module with the functions that an entry reaches, in the order of the module."""
    found = reachable(module.functions, (entry,))
    functions = {n: f for n, f in module.functions.items() if n in found}
    return Module(functions, module.adts, module.strict_dtypes)


def parse(source: str | Path, name: str = "<text>") -> RelayModule:
    """Return the module of a text: our own, Relay's under its header, or JSON. Raises CheckError.

    `source` may be the path of a file. Names of the prelude need no definition in the text.
    """
    if isinstance(source, Path):
        name, source = str(source), source.read_text(encoding="utf-8")
    if source.lstrip().startswith("{"):
        program = from_json(source, name)
        if not isinstance(program, Module):
            raise CheckError(DamagedData(program.span, "it holds an expression, not a module"))
        try:
            verify(program, Stage.TRANSLATED)
        except VerifyError as error:
            raise CheckError(DamagedData(error.node.span, str(error))) from error
        return RelayModule(program)
    library = RELAY_LINKED if dialect_of(source) is RELAY else LINKED
    return RelayModule(parse_module(source, name, library=library))


def _type_vars(function: Function) -> tuple[str, ...]:
    """Return the names of the types that the parameters of a function leave open."""
    own = {p.name for p in function.type_params if isinstance(p, TypeVar)}
    named = type_vars_of(v.ty for v in function.params if v.ty is not None)
    return tuple(name for name in named if name in own)


def _derived(
    module: Module, data: UserData, entry: str, how: Derived
) -> tuple[Module, UserData, str]:
    """Return a module and its data types with a transform of a function, and its name."""
    rule, options, policy, functions = how
    span = module.functions[entry].span
    module, data, rules, _ = linked_in(module, data, [(f, None) for f in functions], span)
    module, name = derive(module, entry, rule, options, policy, rules)
    return module, data, name


def _types_of_values(module: Module, data: UserData) -> TypesOfValues:
    """Return the reader of types of values of a module's data types; sizes get names that no text
    has."""
    numbers = count(1)
    return TypesOfValues(
        definitions_in(module.adts, data), lambda _: Dim.of(f"size {next(numbers)}")
    )
