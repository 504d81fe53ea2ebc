"""``powersum cache``."""

from __future__ import annotations

from typing import Annotated

import typer

from powersum.core import cache
from powersum.core.errors import InputError


def cache_command(
    clear: Annotated[bool, typer.Option("--clear", help="Remove it; what is needed is compiled anew.")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print the folder only.")] = False,
    size: Annotated[bool, typer.Option("--size", help="Print the bytes only.")] = False,
) -> None:
    """Show, or remove, the compiled code that is kept between runs.

    It lies in the user's cache folder; the environment variable POWERSUM_CACHE_DIR names another one.
    """
    if clear + path + size > 1:
        raise InputError("give one of --clear, --path, --size")
    if clear:
        cache.clear()
        return
    folder = cache.cache_folder()
    files, total = cache.size()
    if path:
        print("" if folder is None else folder)
    elif size:
        print(total)
    else:
        print(f"{folder or 'no folder'}: {files} files of compiled code, {total / 1e6:.1f} MB")
