"""Exceptions of onetap. Every message is one line: ``[module] expected X, got Y (where)``."""

from __future__ import annotations


class Error(Exception):
    """A request failed.

    ``kind`` is ``"failure"``, ``"usage"``, ``"check"`` or ``"data"``; ``code`` is the corresponding exit code of the
    command ``onetap`` (1 to 4).
    """

    kind = "failure"
    code = 1


class UsageError(Error, ValueError):
    """An invalid request, such as an unknown target or an array of the wrong shape."""

    kind = "usage"
    code = 2


class CheckError(Error):
    """A check failed: a frozen network does not compute what the PyTorch module computed."""

    kind = "check"
    code = 3


class DataError(Error):
    """A file is missing, damaged or of another kind."""

    kind = "data"
    code = 4


_BY_CODE = {error.code: error for error in (Error, UsageError, CheckError, DataError)}


def error_of(code: int, message: str) -> Error:
    """The error for an exit code of the command or a return value of the C API."""
    return _BY_CODE.get(code, Error)(message)
