"""Models from and to what other libraries hold in memory; none of them is imported unless it is used."""

from powersum.interop.arrays import from_arrays
from powersum.interop.networkx import from_networkx
from powersum.interop.pgmpy import from_pgmpy, to_pgmpy
from powersum.interop.pyagrum import from_pyagrum, to_pyagrum

__all__ = ["from_arrays", "from_networkx", "from_pgmpy", "from_pyagrum", "to_pgmpy", "to_pyagrum"]
