"""Data types: from a user's dataclasses to definitions in the module, and back.

A frozen dataclass alone is a record, a data type with one constructor; frozen dataclasses joined by
a union alias are one data type with a constructor for each; an alias of `Never` is one without any.
A type parameter that stands in a shape is a dim. A `Dim` in a field that is no parameter belongs to
each value: the definition does not quantify it, every match opens it anew and every construction
chooses it.

`DataTypes` holds the data types of one program. The rest of translation asks it for the constructor
of a class, and for the type that an annotation names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.data import BadField, RedefinedClass, TwoUnions
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ...ir.derived_types.batch_dims import batch_definitions
from ...ir.dims import Dim, DimVar
from ...ir.module import AdtDef, ConstructorDef
from ...ir.names import Names
from ...ir.own_sizes import definition
from ...ir.types import (
    UNKNOWN,
    AdtType,
    Kind,
    Substitution,
    Type,
    TypeHole,
    TypeParam,
    TypeVar,
    dim_names,
    names_own_sizes,
    open_shapes,
    substitution,
    subtypes,
)
from ...operators.host.stream import STREAM_DATA
from ...prelude.library import OPTION, inner_of
from ...prelude.names import CONSTRUCTORS
from ..source.residual import Made
from ..source.scope import MISSING, Guard
from ..source.unions import (
    Member,
    Namespace,
    Union,
    alone,
    is_named_alias,
    is_users_class,
    member_of,
    members_of,
    names_nothing,
    parameters,
    solved,
    unions_with,
    with_none,
    without_members,
)
from ..types.aliases import is_size, named_alias
from ..types.annotation import AnnotationReader, NotAType, NotData
from ..types.kinds import Kinds, Located, ParamUses, find_kinds, uses_of
from ..types.number_places import Numbers, places_of
from .data_class import Field, fields_of, place_of, refusal
from .union_mistakes import not_classes, unnamed


@final
@dataclass(frozen=True, slots=True, eq=False)
class DataConstructor:
    """A class as a constructor: of which data type, under which name, and with which fields."""

    adt: str
    name: str
    cls: type
    fields: tuple[Field, ...]

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(f.name for f in self.fields)


@cache
def _of_prelude(cls: type) -> DataConstructor:
    """Return the constructor that a class of the prelude is."""
    known = CONSTRUCTORS[cls]
    fields = tuple(map(_any_field, known.fields))
    return DataConstructor(known.adt, known.name, cls, fields)


def _any_field(name: str) -> Field:
    """Return a field of a class whose annotations do not give it a type."""
    return Field(name, Any, MISSING, keyword_only=False)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DataType:
    """A data type of the program: its name in the module, its parameters and constructors."""

    name: str
    union: Union
    params: tuple[TypeParam, ...]
    constructors: tuple[DataConstructor, ...]
    numbers: tuple[tuple[Numbers, ...], ...] = ()
    """Where in the fields of each constructor numbers are Python's own."""
    of_text: bool = False
    """Whether the classes were made for a data type of a text."""

    def constructor(self, cls: type) -> DataConstructor:
        """Return the constructor that a member is."""
        return next(c for c in self.constructors if c.cls is cls)


@final
class DataTypes:
    """The data types of one program, defined when they are first asked for."""

    def __init__(self, report: Callable[[Problem], None]) -> None:
        self.adts: Final[dict[str, AdtDef]] = {}
        self._report: Final = report
        self._names: Final = Names(frozenset(STREAM_DATA))
        self._unions: Final[dict[type, Union]] = {}
        self._types: Final[dict[frozenset[Any], DataType]] = {}
        self._kinds: Final[Kinds] = {}
        self._guards: Final[dict[tuple[int, str], Guard]] = {}

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The names of classes and aliases that the program was made with."""
        return tuple(self._guards.values())

    @property
    def types(self) -> Mapping[str, DataType]:
        """The data types by their names in the module, in order of definition."""
        return {t.name: t for t in self._types.values()}

    def fresh_name(self, hint: str) -> str:
        """Return a name for a data type that is no user's."""
        return self._names.fresh(hint)

    def constructor(self, cls: type, seen: Namespace, span: Span) -> DataConstructor | None:
        """Return the constructor that a class is; None where it is none, which is reported.

        `seen` are the names in scope where the class is mentioned, at `span`.
        """
        if cls in CONSTRUCTORS:
            return _of_prelude(cls)
        try:
            return self.of_class(cls, seen, span).constructor(cls)
        except NotData as error:
            self._report(error.problem(span))
            return None

    def adopted(self, adt: AdtDef, made: Made) -> str:
        """Return the name here of a data type that a text defines, which has made its classes."""
        members = tuple(Member(cls, ()) for cls, _ in made)
        union = Union(adt.name, members, (), (), {}, adt)
        if union.key not in self._types:
            name = self._names.fresh(adt.name)
            constructors = tuple(
                DataConstructor(name, c.name, cls, tuple(map(_any_field, fields)))
                for c, (cls, fields) in zip(adt.constructors, made, strict=True)
            )
            numbers = tuple((None,) * len(c.fields) for c in constructors)
            whole = DataType(name, union, adt.type_params, constructors, numbers, of_text=True)
            self._types[union.key] = whole
        return self._types[union.key].name

    def define_derived(self, ty: Type, span: Span) -> None:
        """Define the types of tensors with sizes of their own, and of batches, that a type
        mentions."""
        for part in subtypes(ty):
            if isinstance(part, AdtType) and names_own_sizes(part.name):
                self.adts.setdefault(part.name, definition(part.name, span))
        self.adts.update(batch_definitions(ty, self.adts))

    def members(self, found: DataConstructor) -> tuple[DataConstructor, ...]:
        """Return all constructors of the data type of one."""
        if found.cls in CONSTRUCTORS:
            return tuple(_of_prelude(c) for c, k in CONSTRUCTORS.items() if k.adt == found.adt)
        return self.types[found.adt].constructors

    def of_class(self, cls: type, seen: Namespace, span: Span) -> DataType:
        """Return the data type to which a class belongs. Raises NotData."""
        why = refusal(cls)
        if why is not None:
            raise NotData(why)
        return self._defined(self.union_of(cls, seen), seen, span)

    def annotation(self, value: Any, reader: AnnotationReader, span: Span) -> Type | None:
        """Return the type that a class, an alias or a union names; None for any other object.

        Raises NotData, and NotAType for wrong type arguments.
        """
        whole = members_of(value, reader.evaluate)
        if whole is not None and len(whole) == 1:
            return option(reader.type(whole[0]))
        located = self._located(value, reader)
        if located is None:
            why = refusal(value) if is_users_class(value) else None
            if why is not None:
                raise NotData(why)
            return None
        union, args = located
        found = self._defined(union, reader.namespace, span)
        given = tuple(
            _argument(reader, param, args.get(written, _default(written)))
            for param, written in zip(found.params, union.params, strict=True)
        )
        ty = AdtType(found.name, given)
        named = named_alias(value)
        written = value if named is None else named[0]
        return option(ty) if with_none(written, reader.evaluate) else ty

    def instance(self, cls: type, seen: Namespace, span: Span) -> Type:
        """Return the type of the instances of a class in terms of its union's type parameters,
        unknown where it is no data type, which is reported."""
        try:
            found = self.of_class(cls, seen, span)
        except NotData as error:
            self._report(error.problem(span))
            return UNKNOWN
        args = (Dim.of(p.name) if isinstance(p, DimVar) else p for p in found.params)
        return AdtType(found.name, tuple(args))

    # Finding.

    def union_of(self, cls: type, seen: Namespace) -> Union:
        """Return the union that a class is a member of, or that of the class alone. Raises
        NotData."""
        known = self._unions.get(cls)
        if known is not None:
            return known
        found = unions_with(cls, seen, lambda home: AnnotationReader(dict(home), _ignore).evaluate)
        if len(found) > 1:
            places = found[0].place, found[1].place
            raise NotData(lambda span: TwoUnions(span, cls.__name__, *places, place_of(cls, span)))
        union = found[0] if found else alone(cls, seen)
        self._unions[cls] = union
        return union

    def _located(self, value: Any, reader: AnnotationReader) -> Located | None:
        """Return the data type that an annotation names, with its type arguments by parameter."""
        if names_nothing(value, reader.evaluate):
            return without_members(value, reader.namespace), {}
        origin = getattr(value, "__origin__", None)
        if is_named_alias(origin):
            located = self._located(origin, reader)
            if located is None:
                return None
            return located[0], dict(zip(located[0].params, value.__args__, strict=False))
        whole = members_of(value, reader.evaluate)
        members = [member_of(v) for v in ((value,) if whole is None else whole)]
        known = [m for m in members if m is not None]
        if not known:
            return None
        union = self.union_of(known[0].cls, reader.namespace)
        is_whole = len(members) == 1 or union.key == {m.cls for m in known}
        if len(known) < len(members) or not is_whole:
            raise NotData(unnamed(value, union, known))
        return union, {} if is_named_alias(value) else solved(union, known)

    # Defining.

    def _defined(self, union: Union, seen: Namespace, span: Span) -> DataType:
        if union.key not in self._types:
            self._define(union, seen, span)
        return self._types[union.key]

    def _define(self, union: Union, seen: Namespace, span: Span) -> None:
        """Define a data type and all that its fields mention."""
        group, uses = self._reached(union, seen)
        self._kinds.update(find_kinds(group, uses, self._kinds))
        for each in group:
            name = self._names.fresh(each.name)
            params = tuple(self._param(each, p.__name__) for p in each.params)
            names = Names()
            constructors = tuple(
                DataConstructor(name, names.fresh(m.cls.__name__), m.cls, fields_of(m.cls))
                for m in each.members
            )
            self._types[each.key] = DataType(name, each, params, constructors)
            self._guard(each)
        for each in group:
            found = self._types[each.key]
            place = (place_of(each.members[0].cls, span) if each.members else None) or span
            built = tuple(
                self._constructor_def(each, m, c, seen, span)
                for m, c in zip(each.members, found.constructors, strict=True)
            )
            by_identity = any(m.cls.__eq__ is object.__eq__ for m in each.members)
            self.adts[found.name] = AdtDef(found.name, found.params, built, place, by_identity)
        for each in group:
            numbers = tuple(self._numbers(each, m, seen) for m in each.members)
            self._types[each.key] = replace(self._types[each.key], numbers=numbers)

    def _numbers(self, union: Union, member: Member, seen: Namespace) -> tuple[Numbers, ...]:
        """Return where in the fields of a class numbers are Python's own."""
        reader = AnnotationReader(_namespace(member.cls, seen), _ignore, self).marking()
        types = tuple(_quietly(reader, f.annotation) for f in fields_of(member.cls))
        return tuple(map(places_of, self._applied(union, member, types, reader)))

    def _param(self, union: Union, name: str) -> TypeParam:
        return DimVar(name) if self._kinds[union.key, name] is Kind.DIM else TypeVar(name)

    def _reached(
        self, union: Union, seen: Namespace
    ) -> tuple[list[Union], dict[type, list[ParamUses]]]:
        """Return the data types that one mentions and that are not defined yet, itself first; and
        how their classes use type parameters. Raises NotData."""
        group: list[Union] = []
        uses: dict[type, list[ParamUses]] = {}
        pending = [union]
        while pending:
            current = pending.pop(0)
            if current.key in self._types or current.key in {u.key for u in group}:
                continue
            _check(current)
            group.append(current)
            for member in current.members:
                uses[member.cls] = list(self._uses(member.cls, seen))
                pending += [located[0] for use in uses[member.cls] for located in use.data]
        return group, uses

    def _uses(self, cls: type, seen: Namespace) -> list[ParamUses]:
        reader = AnnotationReader(_namespace(cls, seen), _ignore, self)
        found: list[ParamUses] = []
        for field in fields_of(cls):
            try:
                located = lambda value: self._located(value, reader)  # noqa: E731
                found.append(uses_of(field.annotation, located, reader.evaluate))
            except NotData:
                raise
            except Exception:  # a field that cannot be read is reported when it is read
                continue
        return found

    def _constructor_def(
        self,
        union: Union,
        member: Member,
        constructor: DataConstructor,
        seen: Namespace,
        span: Span,
    ) -> ConstructorDef:
        reader = AnnotationReader(_namespace(member.cls, seen), _ignore, self)
        types = tuple(self._field(reader, constructor, f, span) for f in constructor.fields)
        self._check_kinds(constructor, types, span)
        return ConstructorDef(
            constructor.name,
            self._applied(union, member, types, reader),
            constructor.field_names,
        )

    def _check_kinds(
        self, constructor: DataConstructor, types: tuple[Type, ...], span: Span
    ) -> None:
        """Report a type parameter that is a size in one field and a type in another."""
        sizes = frozenset[str]().union(*map(dim_names, types))
        for field, ty in zip(constructor.fields, types, strict=True):
            both = [p.name for p in subtypes(ty) if isinstance(p, TypeVar) and p.name in sizes]
            if both:
                why = f"`{both[0]}` is a type here, and a size in a shape"
                place = place_of(constructor.cls, span, field.name)
                names = constructor.cls.__name__, field.name
                way = "use two type variables"
                self._report(BadField(span, *names, why, way, place))

    def _field(
        self, reader: AnnotationReader, constructor: DataConstructor, field: Field, span: Span
    ) -> Type:
        """Return the type of a field in the parameters of its class; a wrong one is reported."""
        why, instead = "its type arguments are missing", "write them: `Tree[T]`"
        try:
            ty = reader.type(field.annotation)
            if open_shapes(ty):
                why, instead = "its rank is open", "write each of its sizes: `(N, 3)`"
            elif not any(isinstance(part, TypeHole) for part in subtypes(ty)):
                return ty
        except NotAType as error:
            why, instead = error.why, error.instead
        except NotData as error:
            self._report(error.problem(span))
            return UNKNOWN
        except NameError as error:
            why, instead = f"`{error.name}` is not defined", None
        except Exception as error:  # whatever the user's own expression raises
            why, instead = f"evaluating it raises {type(error).__name__}: {error}", None
        cls = constructor.cls
        place = place_of(cls, span, field.name)
        self._report(BadField(span, cls.__name__, field.name, why, instead, place))
        return UNKNOWN

    def _applied(
        self, union: Union, member: Member, types: tuple[Type, ...], reader: AnnotationReader
    ) -> tuple[Type, ...]:
        """Return field types in the parameters of the union: those of the class are replaced by
        what the union passes, and a size of the field's own that is named like one of them
        renamed."""
        own: list[TypeParam] = []
        args: list[Type | Dim] = []
        for param, arg in zip(parameters(member.cls), member.args, strict=True):
            if self._is_size(types, param):
                own.append(DimVar(param.__name__))
                args.append(reader.dim(arg))
            else:
                own.append(TypeVar(param.__name__))
                args.append(reader.type(arg))
        taken = {p.__name__ for p in union.params}
        free = frozenset[str]().union(*map(dim_names, types)) - {
            p.name for p in own if isinstance(p, DimVar)
        }
        names = Names(taken | free)
        apart = {n: Dim.of(names.fresh(n)) for n in sorted(free & taken)}
        replace = substitution(tuple(own), tuple(args))
        return tuple(replace(Substitution(apart, {})(ty)) for ty in types)

    def _is_size(self, types: Sequence[Type], param: Any) -> bool:
        return is_size(param) or any(param.__name__ in dim_names(ty) for ty in types)

    def _guard(self, union: Union) -> None:
        """Note the names on which the data type depends, as far as they can change."""
        classes = [m.cls for m in union.members]
        named = [(c.__qualname__, sys.modules.get(c.__module__), c) for c in classes]
        module = sys.modules.get(str(union.holder.get("__name__")))
        if module is not None and vars(module) is union.holder:
            named.append((union.name, module, union.value))
        for name, home, value in named:
            if home is not None and vars(home).get(name) is value:
                self._guards.setdefault((id(home), name), Guard(name, vars(home), value))


def option(inner: Type) -> Type:
    """Return the prelude's optional of a type; of an optional it is that optional itself."""
    return AdtType(OPTION, (inner,)) if inner_of(inner) is None else inner


def _check(union: Union) -> None:
    """Raise NotData if a class or a union cannot be a data type."""
    if union.others:
        raise NotData(not_classes(union))
    for member in union.members:
        why = refusal(member.cls)
        if why is not None:
            raise NotData(why)
        if _newer(member.cls) is not None and len(union.members) > 1:
            names = member.cls.__name__, f"the union `{union.name}`"
            raise NotData(partial(RedefinedClass, name=names[0], owner=names[1]))


def _newer(cls: type) -> type | None:
    """Return the class that now has the name of another in its module, where there is one."""
    module = sys.modules.get(cls.__module__)
    now = None if module is None else vars(module).get(cls.__qualname__)
    is_other = isinstance(now, type) and now is not cls and now.__qualname__ == cls.__qualname__
    return now if is_other else None


def _default(param: Any) -> Any:
    """Return the default of a type parameter, from Python 3.13 on."""
    has_default = getattr(param, "has_default", None)
    return param.__default__ if has_default is not None and has_default() else None


def _argument(reader: AnnotationReader, param: TypeParam, arg: Any) -> Type | Dim:
    if isinstance(param, DimVar):
        return reader.open_dim() if arg is None else reader.dim(arg)
    return UNKNOWN if arg is None else reader.type_in_data(arg)


def _quietly(reader: AnnotationReader, annotation: Any) -> Type:
    """Return the type that the annotation of a field means, unknown where it cannot be read."""
    try:
        return reader.type(annotation)
    except Exception:  # reported where the field is read
        return UNKNOWN


def _namespace(cls: type, seen: Namespace) -> dict[str, Any]:
    """Return the names that the annotations in a class may mention."""
    module = sys.modules.get(cls.__module__)
    home = {} if module is None else vars(module)
    # A size is one in arithmetic too, which a type variable is not made for.
    sizes = {p: Dim.of(p.__name__) for p in parameters(cls) if is_size(p)}
    own = {p.__name__: sizes.get(p, p) for p in parameters(cls)}
    if "<locals>" in cls.__qualname__:
        return {**home, **seen, **own}
    return {**seen, **home, **own}


def _ignore(_: Problem) -> None:
    """A mistake that is reported elsewhere."""
