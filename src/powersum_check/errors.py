"""The two ways in which a check can end without a verified bound."""

from __future__ import annotations


class CheckError(Exception):
    """Base of both; its text is one line."""


class Rejected(CheckError):
    """The certificate does not prove what it claims: exit code 1."""


class BadFile(CheckError):
    """A file is not what it should be, or asks for more memory than allowed: exit code 2."""
