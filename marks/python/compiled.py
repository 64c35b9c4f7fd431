"""Builds the compiled marks: for `setup.py`, for Stepscope's wheel, or by hand.

    python3 marks/python/compiled.py stepscope_marks/_compiled.abi3.so

Only the standard library is needed. Equal sources and compilers make equal bytes, wherever they are.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = Path("stepscope_marks", "_compiled.c")
# CPython 3.8 and later.
STABLE_ABI = "cp38"
FLAGS = ["-O2", "-s", "-shared", "-fPIC", "-Wl,--build-id=none", "-I../c"]


def missing():
    """What this machine lacks, as text; None if it has all."""
    if not shutil.which(compiler()[0]):
        return f"{compiler()[0]} (Debian: gcc)"
    if not Path(headers(), "Python.h").exists():
        return "Python.h (Debian: python3-dev)"
    return None


def build(module):
    """Compiles the module into this file. Raises CalledProcessError where the compiler fails."""
    command = [*compiler(), *FLAGS, f"-I{headers()}", "-o", str(Path(module).resolve()), str(SOURCE)]
    subprocess.run(command, cwd=HERE, check=True)


def compiler():
    return shlex.split(os.environ.get("CC", "")) or ["cc"]


def headers():
    return sysconfig.get_path("include")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if missing():
        sys.exit(f"missing: {missing()}")
    build(sys.argv[1])
