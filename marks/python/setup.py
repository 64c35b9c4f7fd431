"""Builds the compiled marks where a C compiler and Python's headers are installed. Without them, the package is pure Python."""

from pathlib import Path

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "stepscope_marks._compiled",
            ["stepscope_marks/_compiled.c"],
            include_dirs=[str(Path(__file__).resolve().parent.parent / "c")],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp38"}},
)
