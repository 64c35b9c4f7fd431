"""Copies the Python that runs this into a root: interpreter, standard library, pip, shared libraries, and nothing else.

    python3 packaging/python_root.py ROOT

Prints the interpreter's path inside.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

root = Path(sys.argv[1])
# Virtual environments are links to this.
program = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}").resolve()
LEFT_OUT = shutil.ignore_patterns("site-packages", "dist-packages", "__pycache__", "test", "config-*", "*.a")


def copy(path):
    inside = root / Path(path).relative_to("/")
    if Path(path).is_dir():
        shutil.copytree(path, inside, ignore=LEFT_OUT, symlinks=True, dirs_exist_ok=True)
    elif not inside.exists():
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, inside)


def libraries(files):
    """The shared libraries that these files are linked with, and the loader."""
    lines = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout.splitlines()
    # `libc.so.6 => /lib/libc.so.6 (0x7f...)`, `/lib64/ld-linux-x86-64.so.2 (0x7f...)`, or the name of a file and a colon.
    words = (line.split(" => ")[-1].split(" (")[0].strip() for line in lines if " (0x" in line)
    return {word for word in words if word.startswith("/")}


copy(program)
standard = Path(sysconfig.get_path("stdlib"))
copy(standard)
pip = find_spec("pip")
if pip is None:
    sys.exit("pip is missing (Debian: python3-pip)")
copy(os.path.dirname(pip.origin))
for library in sorted(libraries([program, *standard.rglob("*.so")])):
    copy(library)
print(program)
