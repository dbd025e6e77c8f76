"""The C text of kernels and regions."""

from ..kernel import Kernel as Kernel
from ..kernel import Route as Route
from .library import LIBRARY as LIBRARY
from .library import USE_LIBRARY as USE_LIBRARY
from .lower import lower as lower
from .parts import Parts as Parts
from .parts import in_parts as in_parts
