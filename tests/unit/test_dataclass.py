"""Dataclasses of the package are those of the standard library, made later."""

import copy
import dataclasses
import inspect
import pickle
import weakref
from abc import ABC, abstractmethod
from dataclasses import field
from typing import ClassVar

import pytest

from pyrelay.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: tuple[int, ...] = ()


@dataclass(frozen=True)
class Open:
    x: int


@dataclass(slots=True)
class Counter:
    count: int = 0
    names: list[str] = field(default_factory=list)
    size: int = field(init=False, default=3, compare=False)
    deep: dict[str, int] = field(init=False, default_factory=dict, repr=False)
    label: str = field(kw_only=True, default="")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    value: int
    assign__: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Point):
    z: int


def made_by(make):
    """Return classes of many kinds, as a decorator makes them."""

    @make(frozen=True, slots=True)
    class Plain:
        x: int
        y: str = "y"

    @make(slots=True)
    class Mutable:
        x: list[int] = field(default_factory=list)
        y: int = field(default=2, init=False)
        z: int = field(default=1, kw_only=True)

    @make(frozen=True)
    class Compared:
        x: int
        y: int = field(default=0, compare=False)
        z: int = field(default=0, repr=False)

    @make(eq=False)
    class Identical:
        x: int

    @make(frozen=True, slots=True)
    class Own:
        x: int

        def __eq__(self, other):
            return isinstance(other, Own)

        def __repr__(self):
            return "own"

    @make(frozen=True, slots=True, kw_only=True)
    class Extended(Plain):
        z: float = 1.0

    @make(frozen=True)
    class Counted:
        x: int

        def __post_init__(self):
            object.__setattr__(self, "x", self.x + 1)

    return Plain, Mutable, Compared, Identical, Own, Extended, Counted


@pytest.mark.parametrize("place", range(7))
def test_classes_behave_as_those_of_the_standard_library(place):
    ours, theirs = made_by(dataclass)[place], made_by(dataclasses.dataclass)[place]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    for args in ((), (1,), (1, 2), (1, 2, 3)):
        found = [_outcome(lambda cls=cls, args=args: cls(*args)) for cls in (ours, theirs)]
        assert _text(found[0]) == _text(found[1])
    one, other = ours(1), theirs(1)
    assert (one == ours(1)) is (other == theirs(1))
    assert one != other
    hashes = [_outcome(lambda v=v: hash(v) == hash(copy.copy(v))) for v in (one, other)]
    assert _text(hashes[0]) == _text(hashes[1])
    assert ours.__match_args__ == theirs.__match_args__
    assert [f.name for f in dataclasses.fields(ours)] == [
        f.name for f in dataclasses.fields(theirs)
    ]
    assert ours.__dataclass_params__.frozen == theirs.__dataclass_params__.frozen
    assert hasattr(one, "__dict__") is hasattr(other, "__dict__")


def _outcome(call):
    try:
        return call()
    except TypeError as error:
        return error


def _text(value):
    return f"{type(value).__name__}: {value!r}"


def test_hashes_are_those_of_the_fields_that_are_compared():
    compared = made_by(dataclass)[2]
    assert compared(1, 2) == compared(1, 3)
    assert hash(compared(1, 2)) == hash(compared(1, 3)) == hash((1, 0))
    assert compared(1, 2) != compared(2, 2)


def test_a_method_is_made_when_it_is_first_needed():
    def unmade(cls, name):
        return not inspect.isfunction(vars(cls)[name])

    plain = made_by(dataclass)[0]
    assert unmade(plain, "__init__")
    assert unmade(plain, "__eq__")
    assert unmade(plain, "__hash__")
    value = plain(1)
    assert not unmade(plain, "__init__")
    assert unmade(plain, "__eq__")
    assert value == plain(1)
    assert not unmade(plain, "__eq__")
    assert unmade(plain, "__hash__")


def test_frozen_instances_do_not_change():
    for value in (Point(1), Open(1), Node(1), Derived(1, z=2)):
        name = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{name}'"):
            setattr(value, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete field '{name}'"):
            delattr(value, name)


def test_mutable_fields_are_made_anew_for_each_instance():
    one, other = Counter(), Counter()
    one.names.append("a")
    one.deep["a"] = 1
    assert (other.names, other.deep, other.size) == ([], {}, 3)
    assert one != other
    assert Counter.__hash__ is None


def test_instances_are_copied_pickled_and_replaced():
    for value in (Point(1, (2,)), Open(1), Counter(2, label="c"), Derived(1, z=3)):
        assert copy.copy(value) == copy.deepcopy(value) == value
        assert pickle.loads(pickle.dumps(value)) == value
        assert dataclasses.replace(value) == value
    assert dataclasses.replace(Point(1), y=(3,)) == Point(1, (3,))


def test_unpickled_instances_compare_where_none_was_made_before():
    plain = made_by(dataclass)[0]
    one, other = object.__new__(plain), object.__new__(plain)
    one.__setstate__([1, "a"])
    other.__setstate__([1, "a"])
    assert one == other
    assert hash(one) == hash(other)


def test_nodes_without_equality_are_compared_by_identity():
    assert Node(1) != Node(1)
    assert len({Node(1), Node(1)}) == 2
    assert "Node object at" in repr(Node(1))


def test_a_value_inside_of_itself_is_shown_once():
    value = Counter()
    value.deep["self"] = 1
    value.names.append(value)
    assert repr(value) == "Counter(count=0, names=[...], size=3, label='')"


def test_classes_of_the_standard_library_derive_from_ours():
    @dataclasses.dataclass(frozen=True)
    class Theirs(Point):
        z: int = 0

    @dataclass(frozen=True, slots=True)
    class Ours(Theirs):
        w: int = 1

    assert Ours(1) == Ours(1, (), 0, 1)
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Mutable", (Point,), {"__annotations__": {"q": "int"}}))


def test_a_subclass_calls_the_method_of_its_base():
    class Named(Counter):
        def __init__(self, name):
            super().__init__(3)
            self.name = name

    assert (Named("a").count, Named("a").name) == (3, "a")


def test_abstract_methods_still_have_to_be_defined():
    class Base(ABC):
        @abstractmethod
        def run(self): ...

    @dataclass(frozen=True, slots=True)
    class Missing(Base):
        x: int

    with pytest.raises(TypeError, match="abstract"):
        Missing(1)


def test_variables_of_a_class_are_no_fields():
    @dataclass(frozen=True, slots=True)
    class Pass(Point):
        name: ClassVar[str] = "pass"
        stage: "ClassVar" = 1
        z: int = 2

    assert [f.name for f in dataclasses.fields(Pass)] == ["x", "y", "z"]
    assert (Pass(0).name, Pass.stage, Pass(0).z) == ("pass", 1, 2)
    assert Pass.__slots__ == ("z",)


def test_a_slot_for_weak_references_is_made_once():
    @dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
    class Held:
        x: int

    @dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
    class Again(Held):
        y: int = 0

    value = Again(1)
    assert weakref.ref(value)() is value
    assert Again.__slots__ == ("y",)


def test_classes_with_fields_of_other_names_keep_their_own():
    @dataclass(frozen=True, slots=True)
    class Left:
        first: int
        second: list[int] = field(default_factory=list, kw_only=True)

    @dataclass(frozen=True, slots=True)
    class Right:
        second: int
        first: list[int] = field(default_factory=list, kw_only=True)

    assert repr(Left(1, second=[2])).endswith("Left(first=1, second=[2])")
    assert repr(Right(second=1)).endswith("Right(second=1, first=[])")
    assert Left(first=1) != Right(second=1)
    with pytest.raises(TypeError, match=r"Right.__init__\(\) missing .* 'second'"):
        Right()
