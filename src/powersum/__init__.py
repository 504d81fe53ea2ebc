"""powersum: guaranteed bounds and answers for marginal MAP, the partition function and MAP in graphical models."""

from powersum.errors import InputError
from powersum.model import Model

__version__ = "0.1.0"

__all__ = ["InputError", "Model", "__version__"]
