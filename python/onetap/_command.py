"""Finds and runs the command ``onetap``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig

from .errors import Error, error_of

COMMAND_VARIABLE = "ONETAP"


def find_command() -> str:
    """The program: the variable ONETAP, else the one that pip installed with this package, else one in PATH."""
    named = os.environ.get(COMMAND_VARIABLE)
    if named:
        return named
    found = shutil.which("onetap", path=sysconfig.get_path("scripts")) or shutil.which("onetap")
    if found is None:
        raise Error(
            "[python] expected the command onetap beside this Python (pip install puts it there), in PATH or at "
            f"{COMMAND_VARIABLE}, got none"
        )
    return found


def run_command(*arguments: str) -> str:
    """Runs ``onetap ARGUMENTS`` and returns its standard output; if it fails, its error message is raised."""
    command = find_command()
    try:
        done = subprocess.run([command, *arguments], capture_output=True, text=True, errors="replace")
    except OSError as problem:
        raise Error(f"[python] expected to run {command}, got: {problem}") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("onetap: ")]
        message = lines[-1][len("onetap: ") :] if lines else f"[python] {command} {arguments[0]} failed"
        raise error_of(done.returncode, message)
    return done.stdout
