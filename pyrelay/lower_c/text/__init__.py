"""The C text of kernels and regions."""

from .kernel import Kernel as Kernel
from .lower import lower as lower
