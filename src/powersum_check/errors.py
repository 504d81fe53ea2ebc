"""The two ways in which a check can end without a verified bound."""

from __future__ import annotations


class CheckError(Exception):
    """Base of both; its text is one line."""


class Rejected(CheckError):
    """The certificate does not prove what it claims: exit code 1."""


class BadFile(CheckError):
    """A file is not what it should be, or asks for more memory than allowed: exit code 2."""


def afford(what: str, needed: int, memory: int) -> None:
    """Refuse what would take more bytes than are allowed."""
    if needed > memory:
        raise BadFile(f"{what} would take {needed} bytes, and --memory allows {memory}")
