"""libonetap.so through ctypes: the declarations of ``onetap/onetap.h``, and errors as exceptions.

ctypes releases the interpreter lock during every call.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Iterable

from . import __path__
from .errors import error_of

LIBRARY_VARIABLE = "ONETAP_LIBRARY"


class Options(ctypes.Structure):
    """onetap_options; zeros are defaults."""

    _fields_ = [
        ("size", c_size_t),
        ("target", c_char_p),
        ("threads", c_int32),
        ("batch", c_int32),
        ("tune", c_int32),
        ("reserved", c_int32),
        ("memory_limit", c_int64),
    ]

    def __init__(self, **values: object) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **values)


_FLOATS = POINTER(c_float)
_FUNCTIONS = {
    "onetap_version": (c_char_p, []),
    "onetap_last_error": (c_char_p, []),
    "onetap_open": (c_int, [c_char_p, POINTER(Options), POINTER(c_void_p)]),
    "onetap_close": (None, [c_void_p]),
    "onetap_input_shape": (c_int, [c_void_p, POINTER(c_int64)]),
    "onetap_output_shape": (c_int, [c_void_p, POINTER(c_int64)]),
    "onetap_class_name": (c_char_p, [c_void_p, c_int64]),
    "onetap_pixel_scale": (c_int, [c_void_p, _FLOATS, _FLOATS]),
    "onetap_number_type": (c_char_p, [c_void_p]),
    "onetap_run": (c_int, [c_void_p, c_void_p, c_int64, c_void_p]),
    "onetap_run_u8": (c_int, [c_void_p, c_void_p, c_int64, c_void_p]),
}


def _candidates(folders: Iterable[str]) -> list[str]:
    """What to load: the variable ONETAP_LIBRARY, else the library in a folder of the package, else the linker's.

    An editable install has two folders: that of these sources, and one in site-packages with the library.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return [named]
    inside = [Path(folder) / "libonetap.so" for folder in folders]
    return [str(path) for path in inside if path.exists()][:1] or ["libonetap.so.0"]


def _load() -> ctypes.CDLL:
    problems = []
    for candidate in _candidates(__path__):
        try:
            library = ctypes.CDLL(candidate)
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
            return library
        except (OSError, AttributeError) as problem:
            problems.append(str(problem))
    raise ImportError(
        "onetap: expected libonetap.so beside the package (pip install puts it there), in the linker's path, "
        f"or at {LIBRARY_VARIABLE}; got: {'; '.join(problems)}"
    )


library = _load()


def last_error() -> str:
    """The message of the last call that failed on this thread."""
    message: bytes = library.onetap_last_error()
    return message.decode("utf-8", "replace")


def check(code: int) -> None:
    """Raises the error of a function that returned ``code``, unless it is 0."""
    if code != 0:
        raise error_of(code, last_error() or "[python] unknown failure")
