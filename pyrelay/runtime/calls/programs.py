"""The programs of relay functions: translated with the mistakes of both stages, and exported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...diagnostics.diagnostic import CheckError
from ...ir.expr import Rule, Transform
from ...ir.traverse import nodes_of
from ...lazy import LazyModule
from ...passes.ranks import Ranks, at_ranks
from ...translate.program.described import Described
from ...translate.program.models import ModelSpec
from ...translate.program.signature import Signature
from ...translate.source.definition import (
    Definition,
    DerivedFunction,
    InPlace,
    ModelUse,
    StaticValue,
)
from ...translate.source.scope import CapturedName
from ...translate.translator import Translation, TranslationError, translate
from ..border.places import parameters_of
from ..compile.program import Program
from ..entries.call_signature import Interface
from ..entries.open_program import EvalProgram, OpenProgram, ranks_shown
from ..models.model_io import Arguments
from ..models.model_layout import Blueprint
from ..values.representation import TAGGED, UserData

if TYPE_CHECKING:
    from ... import infer
    from ..interop import export
else:
    infer = LazyModule("pyrelay.infer")
    export = LazyModule("pyrelay.runtime.interop.export")


def translated(
    function: Definition | DerivedFunction,
    statics: Mapping[str, StaticValue | InPlace],
    implicit: Sequence[ModelUse],
    models: Sequence[ModelUse | None],
    varying: Collection[CapturedName] = (),
    types: Mapping[str, Described] | None = None,
) -> Translation:
    """Translate a program. Raises CheckError: where translation finds mistakes, with those that
    inference finds beside them."""
    try:
        return translate(function, statics, implicit, models, varying, types or {})
    except TranslationError as error:
        raise CheckError(*error.diagnostics, *infer.find_mistakes(error.module)) from None


def runs_again(translation: Translation) -> bool:
    """Return whether parts of a program run twice, which must read the same numbers both times."""
    nodes = nodes_of(translation.module)
    return any(isinstance(n, Transform) and n.rule is Rule.CHECKPOINT for n in nodes)


def program_of(translation: Translation) -> Program:
    """Return the program of a translation; of one that takes tensors of any rank, that at the first
    ranks at which it is right. Raises CheckError where it is right at none."""
    return _opened(translation).first()


def _opened(translation: Translation) -> OpenProgram:
    return OpenProgram(translation.module, translation.entry, UserData.of(translation.data))


def at(translation: Translation, ranks: Ranks) -> Translation:
    """Return a translation whose entry takes tensors of these ranks."""
    if not ranks:
        return translation
    module, entry = at_ranks(translation.module, translation.entry, ranks)
    return replace(translation, module=module, entry=entry)


def shown_at(signature: Signature, args: Arguments) -> AbstractContextManager[None]:
    """Return a context in which mistakes show what `...` stands for in a call."""
    passed = dict(args.statics)
    return ranks_shown([p for p in signature.values if p.name not in passed], args.ranks)


def eval_program(blueprint: Blueprint) -> EvalProgram:
    """Return the program that runs instances of a model in eval mode."""
    spec = blueprint.spec
    use = ModelUse(spec.definition, training=False, statics=spec.statics)
    translation = translated(spec.definition, dict(spec.statics), [use], [])
    opened = _opened(translation)
    program = opened.first()
    names = [leaf.name for leaf in blueprint.params], [leaf.name for leaf in blueprint.state]
    interface = Interface.of(blueprint.name, translation.signature, dict(spec.statics), *names)
    head = spec.definition.source.head
    parameters = parameters_of(program.function, translation.signature)
    return EvalProgram(interface, program, parameters, head, opened)


def exporter(spec: ModelSpec) -> Callable[[Any], export.Exported]:
    """Return the function that makes a callable of an exported model in a program."""
    return lambda data: export.Exported.of_values(
        eval_program(Blueprint(spec)), *TAGGED.fields(data)
    )
