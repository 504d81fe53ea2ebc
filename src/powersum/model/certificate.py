"""A certificate: a proof of bounds that ``powersum-check`` verifies, ready to be saved (docs/certificates.md)."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersum.core.files import saving

QUICK = 1
"""How hard arrays are packed: a fifth of the usual time, for files half as large again."""


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """The head and the arrays of the file.

    ``head["claim"]`` has the bounds that are proven: those of the result, with a little room for the checker's own
    rounding.
    """

    head: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    @property
    def n_bytes(self) -> int:
        """Size of all arrays; the file is smaller."""
        return sum(array.nbytes for array in self.arrays.values())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file; it appears once it is complete and was read back."""
        with saving(path, self._check) as file, zipfile.ZipFile(file, "w") as archive:
            # Fixed times: equal proofs give equal files.
            archive.writestr(zipfile.ZipInfo("head.json"), self._head)
            for name, array in self.arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy")
                if array.dtype.kind == "f":
                    # Numbers in full precision do not get smaller.
                    with archive.open(member, "w", force_zip64=array.nbytes > 1 << 30) as place:
                        np.lib.format.write_array(place, np.ascontiguousarray(array), allow_pickle=False)
                else:
                    packed = BytesIO()
                    np.lib.format.write_array(packed, np.ascontiguousarray(array), allow_pickle=False)
                    # The level is that of the call: the one of the archive does not count for members made by hand.
                    archive.writestr(member, packed.getbuffer(), zipfile.ZIP_DEFLATED, compresslevel=QUICK)

    @property
    def _head(self) -> str:
        return json.dumps(self.head, allow_nan=False)

    def _check(self, path: Path) -> None:
        """Read a file back and compare: a good one is not replaced by a damaged one."""
        try:
            with zipfile.ZipFile(path) as archive:
                whole = archive.read("head.json").decode() == self._head
                for name, array in self.arrays.items():
                    with archive.open(f"{name}.npy") as member:
                        found = np.lib.format.read_array(member, allow_pickle=False)
                    whole = whole and found.dtype == array.dtype and np.array_equal(found, array)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError):
            whole = False
        if not whole:
            raise OSError("what was written cannot be read back")

    def __repr__(self) -> str:
        kinds = ", ".join(step["kind"] for step in self.head["steps"])
        return f"Certificate({kinds}; {self.head['claim']}, {self.n_bytes} bytes)"
