"""Reads a capture that is recorded here. Frames of libraries that are not installed are skipped by name."""

import subprocess
import sys

import pytest

import stepscope

PROGRAM = """
import time
import stepscope_marks as marks
for step in range(200):
    marks.step(step / 100)
    time.sleep(0.002)
"""


@pytest.fixture(scope="session")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capture") / "run.capture"
    recorded = subprocess.run([stepscope.program(), "record", "-o", folder, "--", sys.executable, "-c", PROGRAM],
                              stderr=subprocess.PIPE, text=True)
    if recorded.returncode != 0:
        pytest.skip(f"nothing can be recorded on this machine: {recorded.stderr}")
    return stepscope.open(folder)


def test_a_capture_has_its_description_and_tables(capture):
    assert capture.info["schema"] >= 1
    assert {"samples", "stacks", "frames", "steps", "threads", "waits"} <= set(capture.tables)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_are_data_frames_with_the_rows_of_the_program(capture, kind):
    pytest.importorskip("pyarrow" if kind != "polars" else "polars")
    pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    steps = getattr(capture, kind)("steps")
    assert len(steps) == 199
    loops = capture.show("steps")["loops"]
    assert loops.rows[0]["steps"] == 199
    assert len(getattr(loops, kind)()) == 1
    column = lambda name: steps[name].to_pylist() if kind == "arrow" else list(steps[name])
    assert column("end_ns")[0] - column("start_ns")[0] == loops.rows[0]["first_step"]


def test_options_are_those_of_the_command_line(capture):
    table = capture.show("hotspots", limit=2, columns="function,self", owned=["none::*", "nothing::*"])["hotspots"]
    assert [column.name for column in table.columns] == ["function", "self"]
    assert len(table.rows) <= 2
    assert table._repr_html_().startswith("<p><b>")


def test_a_flame_graph_is_a_picture(capture, tmp_path):
    picture = capture.flamegraph(off_cpu=True)
    picture.save(tmp_path / "flame.svg")
    assert (tmp_path / "flame.svg").read_text().count("<svg") >= 1
    assert "srcdoc=" in picture._repr_html_()


def test_failures_are_the_words_of_the_program(capture, tmp_path):
    with pytest.raises(stepscope.Error, match="invalid value 'nothing'"):
        capture.show("nothing")
    with pytest.raises(stepscope.Error, match="not a capture"):
        stepscope.open(tmp_path)
    with pytest.raises(stepscope.Error, match="no table 'none'; there are"):
        capture.file("none")
