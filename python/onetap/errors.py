"""What onetap raises. Every message is one line: ``[part] expected X, got Y (where)``."""

from __future__ import annotations


class Error(Exception):
    """Something that onetap was asked for did not work.

    ``kind`` is ``"failure"``, ``"usage"``, ``"check"`` or ``"data"``; ``code`` is the exit code that the command
    ``onetap`` has for it (1 to 4).
    """

    kind = "failure"
    code = 1


class UsageError(Error, ValueError):
    """The call asked for something impossible: an unknown target, an array of the wrong shape."""

    kind = "usage"
    code = 2


class CheckError(Error):
    """A check did not hold: a frozen network does not compute what the module did."""

    kind = "check"
    code = 3


class DataError(Error):
    """A file is missing, damaged, or not what it should be."""

    kind = "data"
    code = 4


_BY_CODE = {error.code: error for error in (Error, UsageError, CheckError, DataError)}


def error_of(code: int, message: str) -> Error:
    """The error of an exit code of the command, which is also what functions of the C API return."""
    return _BY_CODE.get(code, Error)(message)
