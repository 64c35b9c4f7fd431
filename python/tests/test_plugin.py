"""The pytest plugin, on a session of its own."""

import subprocess
import sys

import pytest

import stepscope

pytest_plugins = ["pytester"]

TESTS = """
import time
import pytest

@pytest.fixture
def pause():
    with open("pause") as file:
        return float(file.read())

@pytest.mark.stepscope({"step.median": "+50%"}, steps=20, runs=4)
def test_query(pause):
    time.sleep(pause)

def test_plain():
    pass
"""


@pytest.fixture
def session(pytester):
    pytester.makepyfile(TESTS)
    recorded = subprocess.run([stepscope.program(), "doctor"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if recorded.returncode != 0:
        pytest.skip("nothing can be recorded on this machine")

    def run(pause, *arguments):
        (pytester.path / "pause").write_text(str(pause))
        loaded = [] if any("stepscope" in str(name) for name in _entry_points()) else ["-p", "stepscope.pytest_plugin"]
        return pytester.run(sys.executable, "-m", "pytest", *loaded, *arguments)

    return run


def _entry_points():
    from importlib.metadata import entry_points

    found = entry_points()
    return found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", [])


def test_a_test_that_became_slower_fails_its_gate(session):
    session(0.002, "--stepscope", "--stepscope-save").assert_outcomes(passed=2)
    session(0.002, "--stepscope").assert_outcomes(passed=2)
    slower = session(0.03, "--stepscope")
    slower.assert_outcomes(passed=1, failed=1)
    slower.stdout.fnmatch_lines(["*regression: step.median: *allowed +50%*"])


def test_without_a_baseline_a_session_says_so_and_reads_the_limits(session, pytester):
    first = session(0.002, "--stepscope")
    first.assert_outcomes(passed=2, warnings=1)
    first.stdout.fnmatch_lines(["*there was no baseline*"])
    pytester.makepyfile(TESTS.replace("step.median", "step.medain"))
    misspelt = session(0.002, "--stepscope", "--stepscope-baseline", "other")
    misspelt.assert_outcomes(passed=1, failed=1)
    misspelt.stdout.fnmatch_lines(["*step.medain*step.median*"])


def test_without_the_option_nothing_is_recorded(session, pytester):
    session(0, ).assert_outcomes(passed=2)
    assert not (pytester.path / ".stepscope").exists()
