"""`breakpoint()` stops where Python stops, with the local names and the lines that Python has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
import torch

import pyrelay
from pyrelay import CheckError, Float, Int, relay

PROGRAMS = {
    "names that loops and branches assign": """
def main(x: Tensor[Float, (N,)], n: Int):
    total = 0.0
    last = 0.0
    for i, v in enumerate(x):
        double = v * 2.0
        if i > 1:
            last = double
            breakpoint()
        else:
            total += double
        breakpoint()
    while n > 0:
        n -= 1
        breakpoint()
    breakpoint()
    return total + last
""",
    "loops in loops, left early": """
def main(x: Tensor[Float, (N,)], n: Int):
    found = 0.0
    for i in range(n):
        for v in x:
            found = found + v
            breakpoint()
            if found > 3.0:
                break
        if i == 1:
            continue
        breakpoint()
    return found
""",
    "functions that are called, and local ones": """
def square(a: Float) -> Float:
    b = a * a
    breakpoint()
    return b

def main(x: Tensor[Float, (N,)], n: Int):
    scale = square(x[0])

    def inner(z: Float):
        y = z + scale
        breakpoint()
        return y * y

    return inner(square(x[1])) + n
""",
    "lambdas under names": """
def main(x: Tensor[Float, (N,)], n: Int):
    double = lambda a: a * 2.0
    first = double(x[0])
    best = sorted([first, x[1]], key=lambda a: -a)
    chosen = lambda a: a + first
    if n > 1:
        chosen = lambda a: a - first
    breakpoint()
    return chosen(best[0])
""",
    "recursion": """
def down(k: Int, a: Float) -> Float:
    if k == 0:
        breakpoint()
        return a
    below = down(k - 1, a * 0.5)
    breakpoint()
    return below + k

def main(x: Tensor[Float, (N,)], n: Int):
    a, b = x[0], x[1]
    a, b = b, a
    breakpoint()
    return down(n, a) + b
""",
    "lists and texts": """
def main(x: Tensor[Float, (N,)], n: Int):
    seen = []
    word = "none"
    for v in x:
        seen.append(v)
        if len(seen) > n:
            word = f"{len(seen)} seen"
        breakpoint()
    rest = seen[1:]
    pair = (n, rest)
    breakpoint()
    return seen[0]
""",
    "cases": """
def main(x: Tensor[Float, (N,)], n: Int):
    match n:
        case 0:
            kind = 10
            breakpoint()
        case 1 | 2 as few:
            kind = few
            breakpoint()
        case many if many > 5:
            kind = many
        case _:
            kind = 3
    best = None
    for v in x:
        if best is None or v > best:
            best = v
        breakpoint()
    return kind * 1.0
""",
    "early returns": """
def pick(v: Float, n: Int) -> Float:
    if n > 0:
        if v > 1.0:
            big = v
            breakpoint()
            return big * 2.0
        small = v
    else:
        small = 0.0
    breakpoint()
    if small > 0.7:
        return small
    last = small + 1.0
    breakpoint()
    return last

def main(x: Tensor[Float, (N,)], n: Int):
    total = 0.0
    for v in x:
        got = pick(v, n)
        if got > 100.0:
            return total
        if got < 0.1:
            break
        total += got
        breakpoint()
    after = total * 2.0
    breakpoint()
    return after
""",
    "names that generated code uses too": """
def main(x: Tensor[Float, (N,)], n: Int):
    device = x * 2.0
    torch = n + 1
    less = device.sum()
    x = x[1:]
    breakpoint()
    return less + torch
""",
}
HEADER = """
from pyrelay import Any, Dim, Float, Int, Tensor
from pyrelay.prelude import List
N = Dim("N")
"""


def plain(value: Any) -> Any:
    """Return a value in a form that `==` compares."""
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return value


class Stops:
    """A hook that notes the line and the local names wherever a program stops."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, dict[str, Any]]] = []

    def __call__(self) -> None:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        names = {n: plain(v) for n, v in frame.f_locals.items() if n[0] != "_" and not callable(v)}
        self.found.append((frame.f_code.co_name, frame.f_lineno, names))


def run(source: str, file: Path, monkeypatch: pytest.MonkeyPatch, decorator: Any) -> Stops:
    """Run a program, by Python alone or compiled; return where it stopped."""
    file.write_text(source)
    module = ModuleType("program")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "program", module)
    vars(module)["relay"] = decorator
    exec(compile(source, str(file), "exec", dont_inherit=True), vars(module))
    stops = Stops()
    monkeypatch.setattr(sys, "breakpointhook", stops)
    vars(module)["main"](torch.tensor([1.0, 0.5, 2.0]), 2)
    return stops


def both(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Stops, Stops, str]:
    source = HEADER + program.replace("\ndef ", "\n@relay\ndef ")
    expected = run(source, tmp_path / "program.py", monkeypatch, lambda f: f)
    found = run(source, tmp_path / "program.py", monkeypatch, relay)
    return expected, found, source


@pytest.mark.host("what a debugger sees is host code, whatever else is there")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_breakpoint_shows_the_names_that_python_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, found, _ = both(PROGRAMS[name], tmp_path, monkeypatch)
    assert len(found.found) == len(expected.found) > 0
    for (function, line, wanted), (other, place, names) in zip(
        expected.found, found.found, strict=True
    ):
        assert (other, place) == (function, line)
        hidden = {"device", "torch"} & set(wanted)  # what generated code uses has a number here
        shown = {**names, **{n: names[f"{n}_1"] for n in hidden}}
        assert {n: shown[n] for n in wanted} == wanted


def lines_run(
    source: str, file: Path, monkeypatch: pytest.MonkeyPatch, decorator: Any
) -> list[int]:
    """Return the lines at which a debugger that goes line by line would stop."""
    lines: list[int] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != str(file):
            return None
        if (
            event == "line"
            and frame.f_code.co_name != "<module>"
            and lines[-1:] != [frame.f_lineno]
        ):
            lines.append(frame.f_lineno)
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        run(source, file, monkeypatch, decorator)
    finally:
        sys.settrace(outer)
    return lines


UNGUARDED = tuple(name for name in PROGRAMS if name != "cases")
"""After a match with guards, the lines of the cases below the one taken are gone through again."""


@pytest.mark.parametrize("name", UNGUARDED)
def test_lines_run_in_the_order_in_which_python_runs_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = HEADER + PROGRAMS[name].replace("\ndef ", "\n@relay\ndef ")
    wanted = lines_run(source, tmp_path / "program.py", monkeypatch, lambda f: f)
    found = lines_run(source, tmp_path / "program.py", monkeypatch, relay)
    assert found == wanted


SCRIPT = """\
import torch
from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def double(v: Float) -> Float:
    w = v * 2.0
    return w + 1.0


@relay
def total_of(x: Tensor[Float, (N,)], n: Int) -> Float:
    total = 0.0
    for v in x:
        y = double(v)
        total += y
    while n > 0:
        n -= 1
        total = total * 0.5
    return total


if __name__ == "__main__":
    print(float(total_of(torch.tensor([1.0, 2.0]), 1)))
"""


def session(
    tmp_path: Path, source: str, commands: str, *before: str, code: int = 0, **environ: str
) -> list[str]:
    """Return what a debugger prints at each prompt, of a script that gets commands by its input."""
    script = tmp_path / "script.py"
    script.write_text(source)
    found = subprocess.run(
        [sys.executable, *before, str(script)],
        input="\n".join(commands.split("; ")) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        check=False,
    )
    assert found.returncode == code, found.stderr
    return [part.strip() for part in found.stdout.replace(str(script), "script.py").split("(Pdb)")]


def stopping(line: int) -> str:
    """Return the script with a breakpoint after a line."""
    lines = SCRIPT.splitlines()
    indent = " " * (len(lines[line - 1]) - len(lines[line - 1].lstrip()))
    return "\n".join([*lines[:line], f"{indent}breakpoint()", *lines[line:]]) + "\n"


def test_a_session_at_a_breakpoint(tmp_path: Path) -> None:
    commands = "w; p total, v, y; n; n; s; s; s; a; p v; r; n; w; c; p x, n; c"
    found = session(tmp_path, stopping(17), commands)
    where = [
        "> script.py(19)total_of()\n-> total += y",
        "script.py(27)<module>()\n-> print(float(total_of(torch.tensor([1.0, 2.0]), 1)))\n"
        "> script.py(19)total_of()\n-> total += y",
        "(tensor(0.), tensor(1.), tensor(3.))",
        "> script.py(16)total_of()\n-> for v in x:",
        "> script.py(17)total_of()\n-> y = double(v)",
        "--Call--\n> script.py(8)double()\n-> def double(v: Float) -> Float:",
        "> script.py(9)double()\n-> w = v * 2.0",
        "> script.py(10)double()\n-> return w + 1.0",
        "v = tensor(2.)",
        "tensor(2.)",
        "--Return--\n> script.py(10)double()->tensor(5.)\n-> return w + 1.0",
        "> script.py(18)total_of()\n-> breakpoint()",
    ]
    assert found[: len(where)] == where
    assert found[-2] == "(tensor([1., 2.]), 1)"
    assert found[-1] == "4.0"


def test_quitting_ends_the_script(tmp_path: Path) -> None:
    found = session(tmp_path, stopping(17), "q", code=1)
    assert found == ["> script.py(19)total_of()\n-> total += y", ""]


def test_pdb_shows_the_names_of_the_source_without_a_breakpoint_in_it(tmp_path: Path) -> None:
    commands = "b 20; b 9; c; p v; w; c; cl 2; Y; c; p total, v, y, n; n; p n; cl 1; c; q"
    found = session(tmp_path, SCRIPT, commands.replace("; Y", ""), "-m", "pdb")
    (stack,) = (part for part in found if "<module>()\n-> print" in part)
    assert "pyrelay" not in stack
    assert "tensor(1.)" in found
    assert "(tensor(8.), tensor(2.), tensor(5.), 1)" in found
    assert "0" in found
    assert any("4.0" in part for part in found)


@pytest.mark.parametrize("lowering", ["torch-regions", "evaluator"])
def test_values_are_there_whatever_computes_tensors(
    lowering: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS["names that loops and branches assign"]
    expected, found, _ = both(program, tmp_path, monkeypatch)
    with pyrelay.options(lowering=lowering):
        again, lowered, _ = both(program, tmp_path, monkeypatch)
    assert again.found == expected.found
    assert lowered.found == found.found


def test_a_breakpoint_in_a_function_that_is_differentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def cubed(x: Float) -> Float:
        y = x * x
        breakpoint()
        return y * x

    @relay
    def looped(x: Float, n: Int) -> Float:
        for i in range(n):
            x = cubed(x) + i
        return x

    stops = Stops()
    monkeypatch.setattr(sys, "breakpointhook", stops)
    assert relay.grad(looped, wrt="x")(2.0, 2) == 3 * 8**2 * 3 * 2**2
    assert [(n["x"], n["y"]) for _, _, n in stops.found] == [(2.0, 4.0), (8.0, 64.0)]


def test_a_breakpoint_behind_a_differentiated_loop_shows_what_the_loop_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @relay
    def powers(x: Float, n: Int) -> Float:
        total = 0.0
        for _ in range(n):
            total = total + x * x
        breakpoint()
        return total

    stops = Stops()
    monkeypatch.setattr(sys, "breakpointhook", stops)
    assert relay.grad(powers, wrt="x")(2.0, 3) == 12
    assert [names["total"] for _, _, names in stops.found] == [12.0]


def test_a_breakpoint_takes_no_arguments() -> None:
    @relay
    def stopped(x: Float) -> Float:
        breakpoint(x)
        return x

    with pytest.raises(CheckError) as caught:
        stopped.check()
    assert caught.value.codes == ("RL108",)


def test_the_evaluator_passes_breakpoints_by(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def stopped(x: Float, n: Int) -> Float:
        y = x * 2.0
        breakpoint()
        return y + n

    stops = Stops()
    monkeypatch.setattr(sys, "breakpointhook", stops)
    assert stopped.interpret(1.0, 2) == 4.0
    assert not stops.found
    assert stopped(1.0, 2) == 4.0
    assert [names for _, _, names in stops.found] == [{"x": 1.0, "n": 2, "y": 2.0}]


def test_the_option_compiles_line_by_line() -> None:
    @relay
    def scaled(x: Float) -> Float:
        y = x * 2.0
        return y + 1.0

    fast = scaled.show("host")
    with pyrelay.options(debug=True):
        assert scaled(1.0) == 3.0
    assert scaled.show("host") == fast
    assert scaled(1.0) == 3.0
