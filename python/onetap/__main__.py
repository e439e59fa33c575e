"""python -m onetap MODEL.tap IMAGE...: prints the most probable classes of images, like `onetap run`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from . import DataError, Error, Model, UsageError, __version__
from .images import pixels_of


def _printable(text: str) -> str:
    """Escapes control characters: names come from files."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def _open_image(path: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise Error("[python] expected Pillow to read images with, got none (pip install pillow)") from None
    try:
        with Image.open(path) as image:
            return pixels_of(image)
    except UsageError as problem:  # a mode that has no pixels of 8 bits
        raise DataError(f"{problem} ({path})") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as problem:
        raise DataError(f"[python] expected an image, got: {problem} ({path})") from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m onetap", description=__doc__)
    parser.add_argument("model", help="a .tap file")
    parser.add_argument("images", nargs="+", metavar="image", help="a file that Pillow reads")
    parser.add_argument("--top", type=int, default=5, help="classes to print (5)")
    parser.add_argument("--threads", type=int, default=0, help="0: all CPUs")
    parser.add_argument("--json", action="store_true", help="one JSON object per image")
    parser.add_argument("--version", action="version", version=f"onetap {__version__}")
    given = parser.parse_args(arguments)
    code = 0
    try:
        with Model(given.model, threads=given.threads) as model:
            for path in given.images:
                try:
                    guesses = model.predict(_open_image(path), top=given.top)
                except DataError as problem:
                    print(f"onetap: {_printable(str(problem))}", file=sys.stderr)
                    code = problem.code
                    continue
                if given.json:
                    top = [{"class": g.name, "index": g.index, "probability": g.probability} for g in guesses]
                    print(json.dumps({"image": path, "top": top}))
                else:
                    named = (f"  {_printable(g.name)} {100 * g.probability:.2f} %" for g in guesses)
                    print(f"{_printable(path)}:" + "".join(named))
    except Error as problem:
        print(f"onetap: {_printable(str(problem))}", file=sys.stderr)
        return problem.code
    return code


if __name__ == "__main__":
    sys.exit(main())
