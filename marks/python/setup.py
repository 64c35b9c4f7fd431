"""Builds the compiled marks where a C compiler and Python's headers are installed. Without them, the package is pure Python."""

import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).resolve().parent))
import compiled  # noqa: E402 (pip runs this file without its folder in the path)


class Build(build_ext):
    def build_extension(self, extension):
        lacks = compiled.missing()
        if lacks:
            return self.warn(f"the marks are not compiled: {lacks} is missing")
        module = Path(self.get_ext_fullpath(extension.name))
        module.parent.mkdir(parents=True, exist_ok=True)
        try:
            compiled.build(module)
        except subprocess.CalledProcessError as error:
            self.warn(f"the marks are not compiled: {error}")


setup(
    cmdclass={"build_ext": Build},
    ext_modules=[Extension("stepscope_marks._compiled", [str(compiled.SOURCE)], py_limited_api=True, optional=True)],
    options={"bdist_wheel": {"py_limited_api": compiled.STABLE_ABI}},
)
