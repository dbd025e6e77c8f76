"""The C text of kernels and regions."""

from .kernel import Kernel as Kernel
from .lower import lower as lower
from .parts import Parts as Parts
from .parts import in_parts as in_parts
