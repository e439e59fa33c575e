"""check_wheel.py WHEEL: it has library, command, types and licences, needs the C library alone, and is small."""

import os
import re
import subprocess
import sys
import tempfile
import zipfile

MOST_BYTES = 6_000_000
OF_THE_C_LIBRARY = re.compile(r"^(libc|libm|libpthread|libdl|librt|ld-linux-[a-z0-9-]+)\.so\.\d+$")


def needed_libraries(path):
    said = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", said)


def main():
    (wheel,) = sys.argv[1:]
    names = zipfile.ZipFile(wheel).namelist()
    problems = []
    (library,) = [name for name in names if name == "onetap/libonetap.so"] or [None]
    (command,) = [name for name in names if name.endswith(".data/scripts/onetap")] or [None]
    for wanted in ("onetap/py.typed", "onetap/__init__.py", "onetap/torch/__init__.py"):
        if wanted not in names:
            problems.append(f"no {wanted}")
    # Its programs hold libraries of others.
    for wanted in ("LICENSE", "THIRD-PARTY.txt"):
        if not any(name.endswith("/" + wanted) and ".dist-info/" in name for name in names):
            problems.append(f"no {wanted}")
    with tempfile.TemporaryDirectory() as folder:
        for name, what in ((library, "library"), (command, "command")):
            if name is None:
                problems.append(f"no {what}")
                continue
            path = zipfile.ZipFile(wheel).extract(name, folder)
            others = [lib for lib in needed_libraries(path) if not OF_THE_C_LIBRARY.match(lib)]
            if others:
                problems.append(f"the {what} needs {', '.join(others)}")
    bytes_ = os.path.getsize(wheel)
    if bytes_ > MOST_BYTES:
        problems.append(f"{bytes_} bytes, more than {MOST_BYTES}")
    for problem in problems:
        print(f"{os.path.basename(wheel)}: {problem}", file=sys.stderr)
    print(f"{os.path.basename(wheel)}: {bytes_} bytes, {len(names)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
