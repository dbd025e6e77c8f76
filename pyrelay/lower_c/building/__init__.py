"""Building C: a compiler, shared objects made of text, and their cache on disk."""

from .compiler import CannotBuild as CannotBuild
from .compiler import Compiler as Compiler
from .compiler import find_compiler as find_compiler
from .library import Library as Library
from .texts import LibrarySource as LibrarySource
from .texts import build as build
from .texts import build_all as build_all
from .texts import build_or_notify as build_or_notify
from .texts import can_build as can_build
