"""Writes a Python wheel: the module, and the files of the packages below the environment's prefix.

    python3 packaging/wheel.py TREE MODULE VERSION FOLDER

Only the standard library is needed. Equal inputs make equal bytes.
"""

import base64
import hashlib
import os
import platform
import sys
import tempfile
import time
import zipfile
from pathlib import Path

tree, module, version, folder = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
root = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "marks/python"))
import compiled  # noqa: E402 (lies beside the sources of the marks)

machine = platform.machine()
# A static program needs no C library, so it suits every distribution.
TAGS = [f"manylinux2014_{machine}", f"musllinux_1_1_{machine}"]
INFO = f"stepscope-{version}.dist-info"

METADATA = f"""Metadata-Version: 2.1
Name: stepscope
Version: {version}
Summary: Performance lab for simulators and robot software: the program, and its captures as data frames
License: Apache-2.0 OR MIT
Project-URL: Repository, https://github.com/stepscope/stepscope
Requires-Python: >=3.8
Provides-Extra: pandas
Requires-Dist: pandas>=2; extra == "pandas"
Requires-Dist: pyarrow; extra == "pandas"
Provides-Extra: polars
Requires-Dist: polars; extra == "polars"
Description-Content-Type: text/markdown

"""

WHEEL = "Wheel-Version: 1.0\nGenerator: stepscope\nRoot-Is-Purelib: false\n" + "".join(f"Tag: py3-none-{tag}\n" for tag in TAGS)


def compiled_marks():
    """The compiled marks, for CPython 3.8 and later with glibc; None without a compiler or Python's headers."""
    if compiled.missing():
        print(f"the wheel has no compiled marks: {compiled.missing()} is missing", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as work:
        made = Path(work, "marks.so")
        compiled.build(made)
        return made.read_bytes()


def contents():
    """Paths in the wheel, with their bytes and whether they can be run."""
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            inside = path.relative_to(tree)
            place = Path("scripts", inside.name) if inside.parts[0] == "bin" else Path("data", inside)
            yield f"stepscope-{version}.data/{place}", path.read_bytes(), os.access(path, os.X_OK)
    for package in (module, root / "marks/python/stepscope_marks"):
        for path in sorted(package.rglob("*")):
            if path.suffix == ".py" or path.name == "py.typed":
                yield f"{package.name}/{path.relative_to(package)}", path.read_bytes(), False
    marks = compiled_marks()
    if marks:
        yield "stepscope_marks/_compiled.abi3.so", marks, True
    readme = (root / "python/README.md").read_text(encoding="utf-8")
    yield f"{INFO}/METADATA", (METADATA + readme).encode(), False
    yield f"{INFO}/WHEEL", WHEEL.encode(), False
    yield f"{INFO}/entry_points.txt", b"[pytest11]\nstepscope = stepscope.pytest_plugin\n", False


def main():
    name = f"stepscope-{version}-py3-none-{'.'.join(TAGS)}.whl"
    # Zip files know no time before 1980.
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    record = []
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:

        def add(path, data, runs):
            entry = zipfile.ZipInfo(path, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            wheel.writestr(entry, data)

        for path, data, runs in contents():
            add(path, data, runs)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        add(f"{INFO}/RECORD", "\n".join([*record, f"{INFO}/RECORD,,", ""]).encode(), False)
    print(folder / name)


main()
