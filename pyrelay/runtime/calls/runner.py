"""From a call of a relay function to a compiled entry: signature, models, guards, caches.

A runner belongs to one definition (or to a function that a transform made of one). It keeps an
entry for each combination of static arguments, models and modes; captured names are checked before
every call, and a program whose captured values have changed is translated anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, final

import torch

from ...config import is_debugging, may_compile
from ...diagnostics.catalogue.call import WouldCompile, WrongCall
from ...diagnostics.diagnostic import CheckError, Report, RunError
from ...diagnostics.misspelt import did_you_mean
from ...garbage import uncollected
from ...ir.expr import Function, Rule
from ...ir.op import Op
from ...lazy import LazyModule
from ...notices import compiling
from ...translate.source.definition import (
    Definition,
    DefinitionKind,
    DerivedFunction,
    ModelUse,
)
from ...translate.source.scope import CapturedName, Guard, Scope, nearest
from ...translate.translator import Translation
from ...translate.types.derived_numbers import derived_numbers, of_models
from ...translate.types.number_places import Numbers, records_in, without_records
from ..border.places import parameters_of
from ..border.value_types import type_vars_of
from ..compile.inspected import Inspected
from ..compile.program import Program
from ..entries.entry import Entry
from ..models.bound import Request
from ..models.model import Model
from ..models.model_io import Arguments, Models, ParameterSource, host_values
from ..models.model_layout import Blueprint, Mode
from ..models.recorded import passed_on
from ..models.records import TensorRecord
from ..values.representation import UserData
from .compiled import CacheInfo, Compiled
from .describing import Describer, may_join
from .direct import Call, ModelCall, Uses
from .fixing import Fixing
from .given_models import check_model, check_models, expect_trainable
from .gradient_results import gradient_maker, gradient_reader
from .made import is_made_again
from .models_in_front import (
    Transformed,
    derived,
    passed,
    transformed,
    with_models_in_front,
    without,
)
from .parameters import Parameters, signature_of
from .programs import at, exporter, program_of, runs_again, shown_at, translated

if TYPE_CHECKING:
    from ... import infer
else:
    infer = LazyModule("pyrelay.infer")

_OF_MODELS: Final = (Model, TensorRecord, Models)


class _RunsAgainError(Exception):
    """Parts of a program would read a captured number twice, which may have changed in between."""


@final
class Runner(Inspected):
    """Runs one relay function."""

    def __init__(
        self,
        function: Definition | DerivedFunction,
        fixing: Fixing | None = None,
        specialised: Translation | None = None,
    ) -> None:
        """`fixing` is what is fixed of the arguments, and `specialised` the program of that."""
        self._function: Final = function
        self._fixing: Final = fixing
        self._specialised: Final = specialised
        self._base: Final = function if isinstance(function, Definition) else function.definition
        self._is_derived: Final = isinstance(function, DerivedFunction)
        self._parameters: Final = Parameters(function, fixing)
        self._compiled: Final[dict[Any, Compiled]] = {}
        self._blueprints: Final[dict[Any, tuple[Translation, Blueprint, Function]]] = {}
        self._several: Final[dict[DerivedFunction, bool]] = {}
        """Whether transforms that were passed take values of several types."""
        self._parts: Final[dict[Definition, Runner]] = {}
        self._uses: Final = Uses()
        self._transforms: Final[dict[Request, ModelCall]] = {}
        """The direct calls of transforms in the parameters of models."""
        self.latest: Call = self._general
        """Runs the function, which must need no implicit model. Raises CheckError and RunError."""
        self.call: ModelCall = self._with_models
        """Runs the function with implicit models. Raises CheckError and RunError."""
        self._varying: Final[dict[CapturedName, Guard]] = {}
        """The captured numbers that have changed; each run reads what they are then."""
        self._are_constants = False
        """Whether the program needs its captured numbers to be known, changing or not."""
        self._integers_are_known = False
        """Whether it needs its captured integers to be known, as sizes are."""

    @property
    def definition(self) -> Definition:
        """The function, or the one that it is a transform of."""
        return self._base

    def of_part(self, definition: Definition) -> Runner:
        """Return the runner of a model inside the model, the same each time."""
        known = self._parts.get(definition)
        if known is None:
            known = self._parts[definition] = Runner(definition)
        return known

    # Calls.

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function; calls like this one are direct from now on, if they can be."""
        result, direct = self._called((), args, kwargs, self._general)
        self.latest = direct or self.latest
        return result

    def _with_models(
        self, models: tuple[ParameterSource, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run the function in the same way, with implicit models."""
        result, direct = self._called(models, args, kwargs, self._with_models)
        self.call = direct or self.call
        return result

    def _called(
        self,
        models: tuple[ParameterSource, ...],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        general: Callable[..., Any],
    ) -> tuple[Any, Callable[..., Any] | None]:
        """Return the result of a call, and the function that runs others directly, or None."""
        bound = self._parameters.bind(args, kwargs, is_transform=self._is_derived)
        compiled = self._entry(models, bound, None)
        bound = compiled.completed(bound)
        result = compiled.finished(self._run(compiled, models, bound), models, bound)
        arrange = self._parameters.arrange
        if arrange is None:
            return result, None
        return result, compiled.direct_call(models, bound, arrange, self._uses, general)

    def of_models(
        self,
        wanted: Request,
        models: tuple[ParameterSource, ...],
        args: Any,
        implicit: Mapping[str, Any],
        tangents: Sequence[Any] = (),
    ) -> Any:
        """Return a transform of the function in the parameters of models, at arguments, which a
        tuple or a list contains; anything else is the only one. `implicit` are values by name;
        `tangents` those of the parameters of each model, in forward mode."""
        given = args if args.__class__ is tuple else self._parameters.apart(args)
        direct = None if implicit or tangents else self._transforms.get(wanted)
        if direct is not None:
            return direct(models, given, implicit)
        return self._of_models(wanted, tangents, models, given, implicit)

    def _of_models(
        self,
        request: Request,
        tangents: Sequence[Any],
        models: tuple[ParameterSource, ...],
        args: tuple[Any, ...],
        implicit: Mapping[str, Any],
    ) -> Any:
        """Return the transform; calls like this one are direct from now on, if they can be."""
        rule, options, mapped = request.rule, request.options, request.mapped
        bound = self._parameters.bind(args, implicit, is_transform=True)
        if rule is not Rule.VMAP:
            expect_trainable(models)
        found = passed(models, bound.values)
        wanted = transformed(rule, len(models), options, found, mapped)
        compiled = self._entry(models, bound, wanted)
        values = without(bound.values, found) if found else bound.values
        bound = compiled.completed(bound._replace(values=values))
        result = self._run(compiled, models, bound, tangents)

        made = gradient_maker(rule, options, compiled.parts)
        arrange = self._parameters.arrange
        has_models = any(isinstance(v, _OF_MODELS) for v in bound.values)
        if arrange is not None and not tangents and not found and not has_models:
            general = partial(self._of_models, request, ())
            direct = compiled.direct_call(models, bound, arrange, self._uses, general, made)
            if direct is not None:
                self._transforms[request] = direct
        return made(compiled.recorded(result, models, bound), models)

    def interpret(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function in the reference evaluator."""
        bound = self._parameters.bind(args, kwargs, is_transform=self._is_derived)
        compiled = self._entry((), bound, None)
        bound = compiled.completed(bound)
        host, finish = host_values((), bound.values, compiled.updated, bound.optimizers)
        try:
            return compiled.recorded(compiled.entry.interpret(host), (), bound)
        finally:
            finish()

    def _run(
        self,
        compiled: Compiled,
        models: tuple[ParameterSource, ...],
        args: Arguments,
        tangents: Sequence[Any] = (),
    ) -> Any:
        host, finish = host_values(models, args.values, compiled.updated, args.optimizers)
        if tangents:
            parts = 2 * len(models)
            host[parts:parts] = tangents
        try:
            try:
                return compiled.entry(host)
            finally:
                finish()
        except KeyboardInterrupt:
            finish()  # it may have come before the first time was over
            raise

    # Entries.

    def _entry(
        self,
        models: tuple[ParameterSource, ...],
        args: Arguments,
        transformed: Transformed | None,
    ) -> Compiled:
        args = self._instantiated(args, models, transformed)
        key = (
            is_debugging(),
            args.statics,
            args.types,
            args.ranks,
            transformed,
            tuple([_mode(m) for m in models]),
            tuple(
                [
                    (type(v), *dict.fromkeys(map(_mode, v if isinstance(v, Models) else (v,))))
                    for v in args.values
                    if v.__class__ is not torch.Tensor and isinstance(v, _OF_MODELS)
                ]
            ),
        )
        known = self._compiled.get(key)
        if known is not None and known.is_valid(args):
            self._uses.hits += 1
            return known
        shown = shown_at(self._parameters.declared, args)
        with shown, uncollected(), compiling(self._base.name):
            known = self._compiled.get(key)
            if known is not None and known.is_valid(args):
                return known
            if known is not None and not self._are_constants:
                self._note_changed(known.translation)
            made = self._compiled[key] = self._make_anew(models, args, transformed)
        return made

    def _instantiated(
        self, args: Arguments, models: tuple[ParameterSource, ...], transformed: Transformed | None
    ) -> Arguments:
        """Instantiate the type parameters where the program looks into what others take
        whatever it is: a gradient does, and a function that is passed and takes several types."""
        reader = self._describer.ranks
        if reader.has_ranks:
            args = args._replace(ranks=reader.ranks(args.values, dict(args.statics)))
        if not self._describer.type_vars:
            return args
        is_derived = transformed is not None or isinstance(self._function, DerivedFunction)
        is_open = any(self._takes_several(value) for _, value in args.statics)
        if not is_derived and not is_open and not may_join((*models, *args.values)):
            return args
        taken = self._parameters.taken(dict(args.statics))
        types = self._describer.types(args.values, taken, self._parameters.batches)
        return args._replace(types=types)

    def _takes_several(self, value: Any) -> bool:
        """Return whether an argument is a function whose type depends on what it is called with: an
        operator, or a transform of a function with type parameters."""
        if not isinstance(value, DerivedFunction):
            return isinstance(value, Op)
        if value not in self._several:
            declared = (p.ty for p in signature_of(value.definition).values)
            self._several[value] = bool(type_vars_of(declared))
        return self._several[value]

    @property
    def _joins(self) -> bool:
        """Whether calls join torch's graph: a function that comes out carries the derivative."""
        function = self._function
        return isinstance(function, Definition) or function.rule not in (Rule.VJP, Rule.LINEARIZE)

    @cached_property
    def _describer(self) -> Describer:
        return Describer(
            self._parameters.declared, Scope(self._base.function, self._base.around).namespace()
        )

    def _note_changed(self, translation: Translation) -> None:
        """Note the captured numbers that are no longer what they were in a program."""
        for guard in translation.guards:
            if not isinstance(guard, Guard) or guard.holds() or not guard.has_changed_number():
                continue
            # The sizes in fields of data are read when the program is made.
            if type(guard.value) is float or not (self._integers_are_known or translation.data):
                self._varying[guard.key] = guard

    def _make_anew(
        self,
        models: tuple[ParameterSource, ...],
        args: Arguments,
        transformed: Transformed | None,
    ) -> Compiled:
        while self._varying:
            try:
                return self._make(models, args, transformed)
            except (CheckError, _RunsAgainError):  # a number that must be known: a size, say
                self._keep_known()
        return self._make(models, args, transformed)

    def _keep_known(self) -> None:
        """Keep the captured numbers constants that a program needs to know: integers first."""
        floats = {k: g for k, g in self._varying.items() if type(g.value) is float}
        self._are_constants = len(floats) == len(self._varying)
        self._integers_are_known = True
        self._varying.clear()
        if not self._are_constants:
            self._varying.update(floats)

    def _make(
        self,
        models: tuple[ParameterSource, ...],
        args: Arguments,
        transformed: Transformed | None,
    ) -> Compiled:
        if not may_compile():
            why = "its captured values changed" if self._compiled else "this is its first call"
            raise RunError(WouldCompile(self._base.name, why))
        translation = self._translation(models, args)
        if self._varying and runs_again(translation):
            raise _RunsAgainError
        given = [_use(m) for m in models]
        if transformed is None:
            check_models(self._base, translation, given)
        else:
            among = {given[number].definition for _, number in transformed.passed}
            check_models(self._base, translation, given, among)
            definitions = [use.definition for use in given]
            translation = with_models_in_front(translation, definitions, transformed.passed)
        program = _program(translation, transformed)
        numbers = self._numbers(translation, program, transformed)
        parameters = parameters_of(program.function, translation.signature)
        program.warn()
        entry = Entry(
            self._function.name,
            program,
            parameters,
            without_records(numbers),
            {n: exporter(spec) for n, spec in translation.exports.items()},
            joins=transformed is None and self._joins,
            models=(3 if transformed is not None and transformed.rule.takes_tangents else 2)
            * len(models),
            definitions=self._describer.definition,
        )
        makes = transformed is None and not models and not self._is_derived and not args.types
        maker = self._base if makes and is_made_again(program.type.result, program.typed) else None
        return Compiled(translation, entry, records_in(numbers), gradient_reader(program), maker)

    def _numbers(
        self, translation: Translation, program: Program, transformed: Transformed | None
    ) -> Numbers:
        """Return where numbers are Python's own in the result of a program."""
        if transformed is not None and transformed.mapped:
            return None  # numbers side by side are tensors
        if transformed is not None:
            numbers = translation.numbers.result
            return of_models(transformed.rule, numbers, transformed.options)
        if isinstance(self._function, DerivedFunction):
            return derived_numbers(program.function.body, translation.numbers).result
        if translation.signature.result is None and translation.numbers.result is None:
            return passed_on(program.function, translation)
        return translation.numbers.result

    def _translation(self, models: tuple[ParameterSource, ...], args: Arguments) -> Translation:
        statics, types = dict(args.statics), dict(args.types)
        own = (p for p in self._parameters.declared.values if p.name not in statics)
        for parameter, value in zip(own, args.values, strict=False):
            check_model(self._base, parameter, value)
        implicit = [_use(m) for m in models]
        values = (v for v in args.values if isinstance(v, _OF_MODELS))
        explicit = [None if v == () else _use(v[0] if isinstance(v, Models) else v) for v in values]
        made = translated(self._function, statics, implicit, explicit, self._varying, types)
        made = at(made, args.ranks)
        return made if self._fixing is None else self._fixing.applied(made)

    # Looking inside.

    @property
    def source_text(self) -> str:
        """The source of the function."""
        return inspect.cleandoc(self._base.source.text)

    @cached_property
    def program(self) -> Program:
        """The program of the function by itself, without the arguments of a call."""
        return program_of(self._specialised or translated(self._function, {}, [], []))

    def check(self, *, strict: bool = False) -> Report:
        """Check the function and everything it reaches; of a transform whose types only a call
        determines, the function that it transforms. Raises CheckError."""
        is_open = self._describer.type_vars and isinstance(self._function, DerivedFunction)
        program = program_of(translated(self._base, {}, [], [])) if is_open else self.program
        if strict:
            infer.infer(program.translated, strict=True)
        return _checked(program)

    def check_with(self, models: Sequence[ParameterSource]) -> Report:
        """Check the function with its implicit models. Raises CheckError and RunError."""
        statics = {} if self._fixing is None else self._fixing.statics
        translation = translated(self._function, statics, [_use(m) for m in models], [])
        check_models(self._base, translation, [_use(m) for m in models])
        return _checked(program_of(translation))

    def cache_info(self) -> CacheInfo:
        """Return the compiled entries with their numbers of uses."""
        return CacheInfo(len(self._compiled), self._uses.hits, len(self._compiled))

    def plan_of_model(
        self, hyper: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> tuple[Blueprint, Function]:
        """Return the blueprint of a model, and its typed function. Raises CheckError.

        Models made alike share a blueprint, so what is compiled for one serves all of them.
        """
        assert self._base.kind is DefinitionKind.MODEL
        for name in hyper:
            if name not in self._parameters.statics:
                kind = type(hyper[name]).__name__
                near = nearest(name, self._parameters.statics)
                instead = did_you_mean(near) or f"declare it in the definition: `*, {name}: {kind}`"
                why = f"has no static parameter {name!r}"
                raise CheckError(WrongCall(self._base.name, self._base.source.head, why, instead))
        key = (tuple(sorted(hyper.items())), tuple(sorted(sizes.items())))
        known = self._blueprints.get(key)
        if known is None or not all(guard.holds() for guard in known[0].guards):
            use = ModelUse(self._base, statics=tuple(hyper.items()))
            translation = translated(self._base, dict(hyper), [use], [])
            function = program_of(translation).function
            known = translation, Blueprint(translation.implicit[0]), function
            self._blueprints[key] = known
        return known[1], known[2]


def _program(translation: Translation, transformed: Transformed | None) -> Program:
    """Return the program of a translation, or of a transform of it in its models."""
    module, name = translation.module, translation.entry
    data = UserData.of(translation.data)
    if transformed is None:
        return Program(module, name, data)
    module, name = derived(module, name, transformed)
    # Gradients beside Python's own numbers are made whole.
    gradients = transformed.path if translation.numbers.result is None else None
    return Program(module, name, data, gradients=gradients)


def _checked(program: Program) -> Report:
    _ = program.derived
    return Report(program.warnings)


def _mode(source: ParameterSource | TensorRecord) -> Mode:
    return source.mode if isinstance(source, Model) else source.home.mode


def _use(source: ParameterSource | TensorRecord) -> ModelUse:
    blueprint, training, frozen = _mode(source)
    spec = blueprint.spec
    return ModelUse(spec.definition, training, spec.statics, frozen=frozen)
