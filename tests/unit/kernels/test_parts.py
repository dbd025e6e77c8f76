"""Updates of parts of tensors: fused where the tensor was just computed, else left to the host."""

from __future__ import annotations

from tests.unit.kernels.test_fuse import called, fused

ROW = 'spec=(("slice", 1, 2, None),)'


def test_a_part_of_a_parameter_is_written_by_a_call() -> None:
    found = fused(
        "def @main(%x: Tensor[(9, 4), float32], %y: Tensor[(1, 4), float32]) {"
        f" set_at(%x, (), exp(%y), {ROW}) }}"
    )
    assert called(found) == ["kernel.1", "set_at"]


def test_what_was_so_updated_is_updated_by_another_call() -> None:
    found = fused(
        "def @main(%x: Tensor[(9, 4), float32], %y: Tensor[(1, 4), float32]) {"
        f" let %z = index_accumulate(%x, (), %y, {ROW}); index_accumulate(%z, (), %y, {ROW}) }}"
    )
    assert called(found) == ["index_accumulate", "index_accumulate"]


def test_a_part_of_what_was_just_computed_is_written_by_its_kernel() -> None:
    found = fused(
        "def @main(%x: Tensor[(9, 4), float32], %y: Tensor[(1, 4), float32]) {"
        f" set_at(exp(%x), (), %y, {ROW}) }}"
    )
    assert called(found) == ["kernel.1"]


def test_parts_added_to_zeros_are_one_kernel() -> None:
    found = fused(
        "def @main(%y: Tensor[(1, 4), float32]) {"
        " let %z = full(size=(9, 4), fill_value=0.0, dtype=float32);"
        f" let %a = index_accumulate(%z, (), %y, {ROW});"
        ' index_accumulate(%a, (), %y, spec=(("slice", 3, 4, None),)) }'
    )
    assert called(found) == ["kernel.1"]
