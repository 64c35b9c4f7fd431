"""Runs the notebook of the examples, cell by cell, without Jupyter. Needs pandas and pyarrow; skipped by name without them."""

import ast
import json
import os
from pathlib import Path

import pytest

import stepscope

NOTEBOOK = Path(__file__).parents[2] / "examples" / "python" / "captures.ipynb"


def test_every_cell_of_the_notebook_runs_and_shows_something(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(stepscope.program()).parent}{os.pathsep}{os.environ['PATH']}")
    names = {}
    shown = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            shown.append(run("".join(cell["source"]), names))
    # The first one records.
    assert len(shown) > 4 and all(shown[1:]), shown


def run(source, names):
    """Runs a cell; what its last line shows, as HTML."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), str(NOTEBOOK), "exec"), names)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
    return value._repr_html_() if hasattr(value, "_repr_html_") else ""
