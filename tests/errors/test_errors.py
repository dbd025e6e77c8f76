"""A user's mistake and its exact rendering: `<family>/<case>.py` beside `<case>.txt`.

A case defines a program. Its mistake shows when the file is imported, or when its `main` is called,
or, without a `main`, when its functions are checked one after another. A `main` with a parameter
gets a folder to write programs into.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pyrelay.ir
from pyrelay.decorators import RelayFunction
from pyrelay.diagnostics.diagnostic import RelayError
from tests.loading import load_file

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.glob("*/*.py"))
TEXTS = sorted(FOLDER.glob("*/*.txt"))

WITHOUT_A_PLACE = {
    "data/equality_of_functions_in_a_script",
    "dispatch/function_for_an_operator",
    "dispatch/mode_by_name",
    "dispatch/name_of_a_mode",
    "dispatch/no_key",
    "dispatch/no_operator",
    "dispatch/not_registered",
    "dispatch/nothing_to_redispatch",
    "dispatch/number_of_a_device",
    "dispatch/registered_twice",
    "dispatch/wrong_parameters",
    "gradient/direction_in_the_place_of_a_name",
    "gradient/direction_of_another_shape",
    "gradient/exported_model",
    "gradient/function_before_the_model",
    "gradient/of_a_value",
    "gradient/rules_above_a_plain_function",
    "language/decorated_class",
    "language/module_of_torch",
    "language/no_source",
    "language/relay_with_an_option",
    "language/relay_with_parentheses",
    "language/static_method",
    "model/called_site",
    "model/device_that_is_not_there",
    "model/dims_as_a_tuple",
    "model/optimizer_of_other_parameters",
    "model/optimizer_state_of_another",
    "model/saved_by_a_newer_version",
    "model/saved_changed",
    "model/saved_default",
    "model/saved_something_else",
    "model/saved_truncated",
    "model/saved_with_an_operator",
    "model/seed_of_text",
    "model/sgd_of_a_model",
    "model/trees_of_two_structures",
    "model/hook_of_a_site",
    "model/pruned_site",
    "model/update_by_a_value",
}
"""The mistakes that are just this: that there is no text to point at; those of whole files; and
those of scripts, whose traceback shows the line."""


def case_name(path: Path) -> str:
    """Return `family/case`."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def load(case: Path) -> ModuleType:
    """Import a case under a name of its own."""
    return load_file(case, f"errors_{case.parent.name}_{case.stem}")


def provoke(case: Path, folder: Path) -> None:
    """Do what shows the mistake of a case."""
    module = load(case)
    if hasattr(module, "main"):
        module.main(*[folder] * len(inspect.signature(module.main).parameters))
        return
    for value in list(vars(module).values()):
        if isinstance(value, RelayFunction):
            value.check()


def with_marks(case: Path) -> Any:
    in_torchs_words = case_name(case) in ("run/class_out_of_range", "run/label_out_of_range")
    marks = [pytest.mark.host("a note is torch's about its own operator")]
    return pytest.param(case, id=case_name(case), marks=marks if in_torchs_words else [])


@pytest.mark.parametrize("case", [with_marks(case) for case in CASES])
def test_a_mistake_is_rendered_exactly_and_in_the_users_file(
    case: Path, update_golden: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(case.parent)
    with pytest.raises(RelayError) as caught:
        provoke(case, tmp_path)
    error = caught.value
    for diagnostic in error.diagnostics:
        if case_name(case) in WITHOUT_A_PLACE:
            continue
        assert diagnostic.primary is not None
        file = Path(diagnostic.primary.span.file.name)
        assert file == case or file.parent == tmp_path
        assert diagnostic.primary.span.text
    text = str(error).replace(f"{tmp_path}{os.sep}", "") + "\n"
    golden = case.with_suffix(".txt")
    if update_golden:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_there_are_at_least_sixty_cases_and_every_text_has_its_program() -> None:
    assert len(CASES) >= 60
    assert {t.with_suffix(".py") for t in TEXTS} <= set(CASES)


def internal_names() -> set[str]:
    """Return the names of the compiler's own classes that no user has met."""
    names: set[str] = set()
    for module in list(sys.modules.values()):
        if module.__name__.startswith(
            (
                "pyrelay.ir",
                "pyrelay.infer",
                "pyrelay.operators",
                "pyrelay.passes",
                "pyrelay.translate",
            )
        ):
            names |= {n for n, v in vars(module).items() if inspect.isclass(v)}
    assert pyrelay.ir.__name__
    return {n for n in names if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", n)}


@pytest.mark.parametrize("text", TEXTS, ids=case_name)
def test_no_message_speaks_of_the_compilers_insides(text: Path) -> None:
    words = set(re.findall(r"\w+", text.read_text(encoding="utf-8")))
    users = set(re.findall(r"\w+", text.with_suffix(".py").read_text(encoding="utf-8")))
    assert words & internal_names() - users == set()
    for sign in (r"\?\w*\d", r"\?hole", "pyrelay/", "object at 0x"):
        assert not re.search(sign, text.read_text(encoding="utf-8"))
