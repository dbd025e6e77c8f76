"""Parameters of which a model, and the functions it calls, only look rows up."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model
from pyrelay.translate.program.models import values_of
from pyrelay.translate.translator import translate

K, N = Dim("K"), Dim("N")


@relay
def rows(table: Tensor[Float, (K, 3)], ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 3)]:
    return table[ids]


@relay
def first(table: Tensor[Float, (K, 3)], ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, 3)]:
    other = table
    return rows(other, ids)


@relay
def counted(table: Tensor[Float, (K, 3)], ids: Tensor[Int, (N,)], count: int) -> Float:
    found = rows(table, ids).sum()
    return found if count == 0 else found + counted(table, ids - 1, count - 1)


@relay
def product(table: Tensor[Float, (K, 3)], ids: Tensor[Int, (N,)]) -> Tensor[Float, (N, K)]:
    return table[ids] @ table.T


@relay
def same(table: Tensor[Float, (K, 3)]) -> Tensor[Float, (K, 3)]:
    return table


@relay
def unused(table: Tensor[Float, (K, 3)], ids: Tensor[Int, (N,)]) -> Float:
    return 1.0


@relay_model
def through_functions(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return first(table, ids).sum() + rows(table, ids).sum()


@relay_model
def through_recursion(ids: Tensor[Int, (N,)]) -> Float:
    return counted(relay.param((500, 3)), ids, 3)


@relay_model
def in_itself(ids: Tensor[Int, (N,)], count: int) -> Float:
    found = rows(relay.param((500, 3)), ids).sum()
    return found if count == 0 else found + in_itself(ids, count - 1)


@relay_model
def elements(ids: Tensor[Int, (N, 3)]) -> Float:
    table = relay.param((500, 3))
    return relay.gather(table, 0, ids).sum() + relay.take(table, ids).sum()


@relay_model
def within(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return table[ids, :].sum() + table[ids, 1].sum() + table[ids, 1:].sum()


TABLES = [within, through_functions, through_recursion, in_itself, elements]


@relay_model
def read_as_a_whole(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return rows(table, ids).sum() + product(table, ids).sum()


@relay_model
def returned(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return rows(table, ids).sum() + same(table).sum()


@relay_model
def columns(ids: Tensor[Int, (N,)]) -> Float:
    table = relay.param((500, 3))
    return table[ids].sum() + table[:, 1].sum()


@relay_model
def never_read(ids: Tensor[Int, (N,)]) -> Float:
    return unused(relay.param((500, 3)), ids)


OTHERS = [columns, read_as_a_whole, returned, never_read]


def is_table(model: Any) -> list[bool]:
    (spec,) = translate(model.__relay__, {}).implicit
    return [value.is_table for value in values_of(spec)]


@pytest.mark.parametrize("model", TABLES, ids=lambda m: m.__name__)
def test_a_parameter_whose_rows_functions_look_up_is_a_table(model: Any) -> None:
    assert is_table(model) == [True]


@pytest.mark.parametrize("model", OTHERS, ids=lambda m: m.__name__)
def test_a_parameter_with_another_use_somewhere_is_no_table(model: Any) -> None:
    assert is_table(model) == [False]


def test_the_tables_of_a_model_inside_are_its_own() -> None:
    @relay_model
    def around(ids: Tensor[Int, (N,)]) -> Float:
        return through_functions(ids) + product(relay.param((500, 3)), ids).sum()

    assert is_table(around) == [True, False]
