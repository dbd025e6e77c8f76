"""The residual program: code that partial evaluation emits, and what is known where it stands.

Every value that is not a constant is bound to a variable where it is made, in order of evaluation,
so no work and no effect is duplicated or moved. Bindings that remain unused are dead code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Call, Constant, Constructor, Expr, Tuple, Var, is_unit, type_of
from ...ir.module import AdtDef
from ...ir.own_sizes import has_own_sizes
from ...ir.rewriter import stands_for
from ...ir.traverse import Steps
from ...ir.types import AdtType, SizeType, TupleType, Type, dim_names
from ...operators.host.failing import fail, no_element, no_structure
from ...operators.host.text import stop
from .values import Known, Made, Unknown, Value, made, token

_DIVERGING: Final = (fail, stop, no_element, no_structure)


@final
@dataclass(slots=True)
class Facts:
    """The facts at a place of the residual program besides the values of variables.

    `learned` has what branches taken say of unknown values, `cells` what references hold, both by
    the variable that stands for them. `level` counts the unknown branches around.
    """

    learned: dict[Expr, Value] = field(default_factory=dict[Expr, Value])
    cells: dict[Expr, Value] = field(default_factory=dict[Expr, Value])
    level: int = 0

    def inside(self) -> Facts:
        """Return the facts at the beginning of a branch."""
        return Facts(dict(self.learned), dict(self.cells), self.level + 1)


@final
@dataclass(frozen=True, slots=True)
class Hole:
    """A part of a value that branches give differently: the variable that it gets, and what each
    branch gives."""

    var: Var
    parts: tuple[Value | None, ...]


@final
@dataclass(frozen=True, slots=True)
class Assembled:
    """A value to be made of parts that branches give."""

    constructor: Constructor | None
    ty: Type
    fields: tuple[Joined, ...]
    span: Span


Joined: TypeAlias = "Value | Hole | Assembled"
"""A value after branches: equal in all of them, different, or made alike of such values."""


@final
class Residual:
    """Emits code."""

    def __init__(self, adts: Mapping[str, AdtDef]) -> None:
        self.definitions: Final[dict[Expr, Expr]] = {}
        """The values of the variables emitted so far."""
        self.operations = 0
        """How many operators and calls have been emitted."""
        self._adts: Final = adts
        self._fields: Final[dict[tuple[Type, str], tuple[Type, ...] | None]] = {}

    # Values.

    def value(self, atom: Expr) -> Value:
        """Return an atom of the residual program as a value."""
        if isinstance(atom, Constant):
            return Known(atom)
        if is_unit(atom):
            return made(atom, None, ())
        ty = atom.ty
        if isinstance(ty, SizeType) and ty.dim.constant is not None:
            return Known(Constant(ty.dim.constant, ty, span=atom.span))
        return Unknown(atom)

    def bind(self, hint: str, node: Expr, code: BlockBuilder) -> Value:
        """Emit a binding; return the value that nothing but its type is known of."""
        var = Var(hint, type_of(node), span=node.span)
        self.define(var, node, code)
        self.operations += 1
        return self.value(var)

    def define(self, var: Var, node: Expr, code: BlockBuilder) -> None:
        """Emit the binding of a variable."""
        self.definitions[var] = node
        code.bind(var, node)

    def construct(
        self,
        constructor: Constructor | None,
        fields: Sequence[Value],
        ty: Type,
        span: Span,
        code: BlockBuilder,
    ) -> Value:
        """Emit data or a tuple of fields that are known in part."""
        types = self.field_types(ty, constructor)
        atoms = [f.atom for f in fields]
        if types is not None:
            atoms = [self.fitting(f, t, code) for f, t in zip(fields, types, strict=True)]
        if constructor is None:
            node: Expr = Tuple(tuple(atoms), ty, span=span)
            if not atoms:
                return made(node, None, ())
            hint = "t"
        else:
            assert isinstance(ty, AdtType)
            node = Call(constructor, tuple(atoms), type_args=ty.args, ty=ty, span=span)
            hint = constructor.name.lower()
        var = Var(hint, ty, span=span)
        self.define(var, node, code)
        return made(var, constructor, fields)

    def field_types(self, ty: Type, constructor: Constructor | None) -> tuple[Type, ...] | None:
        """Return the types of the fields of a value of a type; None where a field has sizes that
        the type does not determine."""
        if constructor is None:
            return ty.fields if isinstance(ty, TupleType) else None
        place = ty, constructor.name
        if place not in self._fields:
            self._fields[place] = self._fields_of(ty, constructor)
        return self._fields[place]

    def _fields_of(self, ty: Type, constructor: Constructor) -> tuple[Type, ...] | None:
        if not isinstance(ty, AdtType) or has_own_sizes(ty) or ty.name not in self._adts:
            return None
        adt = self._adts[ty.name]
        declared = adt.constructor(constructor.name).fields
        known = {p.name for p in adt.type_params}
        if any(not dim_names(t) <= known for t in declared):
            return None
        return adt.field_types(ty, constructor.name)

    def fitting(self, value: Value, ty: Type, code: BlockBuilder) -> Expr:
        """Return the atom of a value where one of a type is needed: a second name for it, if its
        own type says less or other sizes."""
        atom = value.atom
        if stands_for(atom, ty):
            return atom
        var = Var(_hint(atom), ty, span=atom.span)
        return code.bind(var, atom)

    def narrowed(self, value: Value, ty: Type, code: BlockBuilder) -> Value:
        """Return a value as one of a type, which its atom then has."""
        atom = self.fitting(value, ty, code)
        if atom is value.atom or isinstance(value, Known):
            return value
        return self.value(atom) if isinstance(value, Unknown) else replace(value, atom=atom)

    def diverges(self, value: Value) -> Call | None:
        """Return the call that never gives a value, if that is what a value is of."""
        found = self.definitions.get(value.atom) if isinstance(value, Unknown) else None
        return found if isinstance(found, Call) and found.callee in _DIVERGING else None

    # Patterns.

    def instance(
        self, pattern: Value, ty: Type, hint: str, params: list[Var], code: BlockBuilder
    ) -> Steps[Value]:
        """Return a value of a pattern whose unknown parts are new parameters."""
        match pattern:
            case Unknown(atom):
                params.append(Var(hint, ty, span=atom.span))
                return self.value(params[-1])
            case Known():
                return pattern
            case Made(atom, constructor, fields):
                types = self.field_types(ty, constructor)
                assert types is not None, "patterns are sealed"
                inside: list[Value] = []
                for part, part_type in zip(fields, types, strict=True):
                    inside.append((yield self.instance(part, part_type, hint, params, code)))
                return self.construct(constructor, inside, ty, atom.span, code)

    def hole_types(self, pattern: Value, ty: Type) -> Steps[list[Type]]:
        """Return the types of the unknown parts of a pattern, in order."""
        match pattern:
            case Unknown():
                return [ty]
            case Known():
                return []
            case Made(_, constructor, fields):
                types = self.field_types(ty, constructor)
                assert types is not None, "patterns are sealed"
                found: list[Type] = []
                for part, part_type in zip(fields, types, strict=True):
                    found += yield self.hole_types(part, part_type)
                return found

    def sealed(self, pattern: Value, ty: Type) -> Steps[Value]:
        """Return a pattern without the parts whose types nothing outside determines."""
        if not isinstance(pattern, Made):
            return pattern
        types = self.field_types(ty, pattern.constructor)
        if types is None:
            return Unknown(pattern.atom)
        fields: list[Value] = []
        for part, part_type in zip(pattern.fields, types, strict=True):
            fields.append((yield self.sealed(part, part_type)))
        return made(pattern.atom, pattern.constructor, fields)

    # Joins.

    def joined(
        self, values: Sequence[Value | None], ty: Type, span: Span, found: list[Hole]
    ) -> Steps[Joined]:
        """Return the common value of branches, and add its differing parts to `found`; None is the
        value of a branch that never gives one."""
        given = [v for v in values if v is not None]
        first = given[0]
        if len(given) > 1 and all(v is first for v in given):
            return first  # no arm sees what another has made, so it stands before them
        if isinstance(first, Known) and all(_is_equal(first, v) for v in given):
            return first
        types = None
        if isinstance(first, Made) and all(
            isinstance(v, Made) and first.is_alike(v) for v in given
        ):
            types = self.field_types(ty, first.constructor)
        if types is None or not isinstance(first, Made):
            hole = Hole(Var("t", ty, span=span), tuple(values))
            found.append(hole)
            return hole
        fields: list[Joined] = []
        for index, part_type in enumerate(types):
            parts = [v.fields[index] if isinstance(v, Made) else None for v in values]
            fields.append((yield self.joined(parts, part_type, span, found)))
        return Assembled(first.constructor, ty, tuple(fields), span)

    def rebuilt(self, joined: Joined, code: BlockBuilder) -> Steps[Value]:
        """Emit a value after branches, its holes bound."""
        match joined:
            case Hole(var):
                return self.value(var)
            case Assembled(constructor, ty, parts, span):
                fields: list[Value] = []
                for part in parts:
                    value = yield self.rebuilt(part, code)
                    fields.append(value)
                return self.construct(constructor, fields, ty, span, code)
            case value:
                return value


def _is_equal(value: Known, other: Value) -> bool:
    return isinstance(other, Known) and token(value.atom) == token(other.atom)


def _hint(atom: Expr) -> str:
    return atom.name if isinstance(atom, Var) else "t"
