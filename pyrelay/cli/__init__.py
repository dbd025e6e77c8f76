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
from ..version import __version__
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
    parser.add_argument("--version", action="version", version=f"pyrelay {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    check = _command(commands, "check", "check the compiled functions and models of files")
    check.add_argument(
        "file", type=Path, help="a Python file, a text, or a folder of files that use pyrelay"
    )
    check.add_argument("--json", action="store_true", help="print the mistakes as JSON")
    check.add_argument(
        "--strict",
        action="store_true",
        help="refuse equations of sizes that types do not decide, as f.check(strict=True) does",
    )
    check.add_argument(
        "--fix", action="store_true", help="write fixes that are certain into the files"
    )

    show = _command(commands, "show", "print the program of a function at a stage")
    show.add_argument("target", metavar="FILE:NAME", help="a function, or a whole text")
    show.add_argument(
        "--stage",
        default="typed",
        help="source, typed, python, anf, grad, regions, host, c, triton, ...; default: typed",
    )

    explain = _command(
        commands, "explain", "print what runs a function, with costs; or the meaning of an error"
    )
    explain.add_argument("file", type=Path, help="a Python file, a text, or a code such as RL204")
    explain.add_argument("function", nargs="?", help="one function; default: all of the file")

    _add_text_commands(commands)
    cache = _command(commands, "cache", "show or remove what is kept between processes")
    cache.add_argument("action", choices=("info", "clear"))
    _command(commands, "doctor", "print versions, devices, compilers, caches and options")
    return parser


def _add_text_commands(commands: Any) -> None:
    """Add the commands on programs in text files."""
    run = _command(commands, "run", "print the value of a function of a text")
    run.add_argument("file", type=Path, metavar="FILE.relay")
    run.add_argument("--entry", help="the function; default: main, or the first")
    run.add_argument(
        "--arg",
        action="append",
        default=[],
        help="one argument, with its parameter's name or without: 2.5, [1, 2], a shape to fill at "
        "random such as (2, 3), x.npy, w=x.npz:name, x.safetensors:name",
    )
    run.add_argument("--seed", type=int, default=0, help="for arguments that are filled at random")

    opt = _command(commands, "opt", "print what passes make of a text")
    opt.add_argument("file", type=Path, metavar="FILE.relay")
    opt.add_argument(
        "-p",
        "--passes",
        type=lambda names: [n for n in names.split(",") if n],
        default=[],
        help="names joined by commas, such as infer,anf,fold; MODULE:NAME for one of your own",
    )
    opt.add_argument("--entry", help="the function that is run; default: main, or the first")
    opt.add_argument("--verify", action="store_true", help="check the program after each pass")
    opt.add_argument("--time", action="store_true", help="print how long each pass takes")
    opt.add_argument("--diff", action="store_true", help="print what each pass changes")


def _command(commands: Any, name: str, does: str) -> argparse.ArgumentParser:
    """Add a command; argparse does not export the type of `commands`."""
    return commands.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.")
