"""The command line: check, show and run programs, apply passes, describe this installation.

Each command is a function that returns the exit status: 0 when all is well, 1
when the user's program has mistakes, 2 when the command could not be carried out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..diagnostics.diagnostic import RelayError
from .load import LoadError


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    args = _parser().parse_args(arguments)
    try:
        return _run(args)
    except LoadError as error:
        sys.stderr.write(f"{error}\n")
    except RelayError as error:
        from ..diagnostics.colour import print_coloured

        print_coloured(error.diagnostics, sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # as of a program that the signal ended
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
    return 2


def _run(args: argparse.Namespace) -> int:
    match args.command:
        case "check":
            from .check import check

            return check(args.file, as_json=args.json, fix=args.fix, strict=args.strict)
        case "show":
            from .show import show

            return show(args.target, args.stage)
        case "explain":
            from .show import explain, explain_code, is_code

            if is_code(str(args.file)) and not args.file.exists():
                return explain_code(str(args.file))
            return explain(args.file, args.function)
        case "run":
            from .run import run

            return run(args.file, args.entry, args.arg, args.seed)
        case "opt":
            from .opt import opt

            return opt(
                args.file,
                args.passes,
                args.entry,
                verified=args.verify,
                timed=args.time,
                diffed=args.diff,
            )
        case "cache":
            from .cache import cache

            return cache(args.action)
        case _:
            from .doctor import doctor

            return doctor()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pyrelay", description="Check and look at programs compiled by pyrelay."
    )
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser(
        "check",
        help="check every @relay and @relay_model object of a Python file, or a text, FILE.relay",
    )
    check.add_argument("file", type=Path, help="or a folder: every file in it that uses pyrelay")
    check.add_argument("--json", action="store_true", help="print the mistakes as JSON")
    check.add_argument(
        "--strict",
        action="store_true",
        help="refuse equations of sizes that the types do not imply, as check(strict=True) does",
    )
    check.add_argument("--fix", action="store_true", help="apply the fixes that are certain")

    show = commands.add_parser("show", help="print a function's program at a stage")
    show.add_argument(
        "target", metavar="FILE:NAME", help="a text, FILE.relay, may stand without a name"
    )
    show.add_argument(
        "--stage", default="typed", help="source, typed, anf, grad, regions, host ..."
    )

    explain = commands.add_parser(
        "explain",
        help="what kernels a function becomes, what they cost, and why; or what an error means",
    )
    explain.add_argument("file", type=Path, help="or the code of an error, such as RL204")
    explain.add_argument("function", nargs="?", help="all of the file by default")

    _add_text_commands(commands)
    cache = commands.add_parser("cache", help="show or remove what is kept between processes")
    cache.add_argument("action", choices=("info", "clear"))
    commands.add_parser("doctor", help="print versions, devices, compilers, caches and options")
    return parser


def _add_text_commands(commands: Any) -> None:
    """Add the commands on programs in text files; argparse does not export the type."""
    run = commands.add_parser("run", help="print the value of a function of a text")
    run.add_argument("file", type=Path, metavar="FILE.relay")
    run.add_argument("--entry", help="the function; `main` by default")
    run.add_argument(
        "--arg",
        action="append",
        default=[],
        help="a number, a list, a shape such as (2, 3), or x.npy, x.npz:name, x.safetensors:name; "
        "`name=` before it says for which parameter",
    )
    run.add_argument("--seed", type=int, default=0, help="for arguments given by their shape")

    opt = commands.add_parser("opt", help="print what passes make of a text")
    opt.add_argument("file", type=Path, metavar="FILE.relay")
    opt.add_argument(
        "-p",
        "--passes",
        type=lambda names: [n for n in names.split(",") if n],
        default=[],
        help="names joined by commas, such as infer,anf,fold; MODULE:NAME for one of your own",
    )
    opt.add_argument("--entry", help="the function that is run; `main` by default")
    opt.add_argument("--verify", action="store_true", help="check the program after each pass")
    opt.add_argument("--time", action="store_true", help="print how long each pass takes")
    opt.add_argument("--diff", action="store_true", help="print what each pass changes")
