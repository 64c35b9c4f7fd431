"""Stepscope in pytest: `pytest --stepscope`.

Each test is a scope with its name, so that `stepscope record -- pytest --stepscope` shows what each one costs. A test with the mark
`stepscope` has a gate: it is called repeatedly while the recorder is attached, each call is a step, and its limits are judged
against the recordings that `--stepscope-save` kept.

    @pytest.mark.stepscope({"step.median": "+10%", "switches": "+20%"}, steps=200)
    def test_query(world):
        world.query()
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

import stepscope
import stepscope_marks

#: Recordings of each test.
RUNS = 3

#: Longest time until the recorder is attached.
PATIENCE_S = 20


class NoBaseline(UserWarning):
    """A test has limits, and nothing to judge them against."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stepscope")
    group.addoption("--stepscope", action="store_true", help="mark tests for the recorder, and judge limits of tests")
    group.addoption("--stepscope-save", action="store_true", help="keep the recordings of this session as the baseline of limits")
    group.addoption("--stepscope-baseline", default=".stepscope/pytest", metavar="FOLDER", help="where baselines are kept")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stepscope(limits, steps=100, runs=3): limits of `stepscope gate` on calls of the test")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not item.config.getoption("--stepscope"):
        yield
        return
    with stepscope_marks.scope(item.name):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    marker = pyfuncitem.get_closest_marker("stepscope")
    if marker is None or not pyfuncitem.config.getoption("--stepscope"):
        return None
    limits, settings = _settings(marker)
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    def call() -> None:
        pyfuncitem.obj(**arguments)

    call()  # a failure of the test itself, before anything is measured
    kept = Path(pyfuncitem.config.getoption("--stepscope-baseline")) / re.sub(r"[^\w.-]+", "_", pyfuncitem.nodeid)
    new = kept.with_name(kept.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    for run in range(int(settings.get("runs", RUNS))):
        _record(new / str(run + 1), call, int(settings.get("steps", 100)))
    try:
        if kept.is_dir() and not pyfuncitem.config.getoption("--stepscope-save"):
            _judge(pyfuncitem, limits, kept, new)
        else:
            # Limits are read with these recordings on both sides, so that a wrong one is found now, and not in the next session.
            _gate(limits, new, new)
            shutil.rmtree(kept, ignore_errors=True)
            new.rename(kept)
            if not pyfuncitem.config.getoption("--stepscope-save"):
                warnings.warn(f"there was no baseline, so no limit was judged; this session's recordings are kept in {kept}", NoBaseline)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return True


def _settings(marker: pytest.Mark) -> "tuple[Dict[str, str], Dict[str, Any]]":
    if not marker.args or not isinstance(marker.args[0], dict):
        raise pytest.UsageError('the mark stepscope needs limits, e.g. pytest.mark.stepscope({"step.median": "+10%"})')
    return marker.args[0], dict(marker.kwargs)


def _record(folder: Path, call: Any, steps: int) -> None:
    """Records these calls of a test, in this process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [stepscope.program(), "record", "--pid", str(os.getpid()), "-o", str(folder)]
    recorder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _wait_for_recorder(recorder, folder)
        for _ in range(steps + 1):  # the last mark ends the last step
            stepscope_marks.step()
            call()
        stepscope_marks.step()
    finally:
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate()
    if recorder.returncode != 0:
        raise stepscope.Error(errors.strip())


def _wait_for_recorder(recorder: "subprocess.Popen[str]", folder: Path) -> None:
    """Waits until the recorder reads marks: a mark finds its flag set."""
    deadline = time.monotonic() + PATIENCE_S
    while recorder.poll() is None and time.monotonic() < deadline:
        stepscope_marks.counter("stepscope.pytest", 0)
        if stepscope_marks.is_recording():
            return
        time.sleep(0.01)


def _gate(limits: Dict[str, str], kept: Path, new: Path) -> stepscope.Table:
    with tempfile.TemporaryDirectory() as folder:
        lab = Path(folder) / "stepscope.toml"
        lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in limits.items()]
        lab.write_text('[scenario.test]\ncommand = ["pytest"]\n[gate]\n' + "\n".join(lines) + "\n", encoding="utf-8")
        try:
            return stepscope.gate(lab=lab, baseline=kept, candidate=new)
        except stepscope.Error as error:
            pytest.fail(str(error), pytrace=False)


def _judge(item: pytest.Function, limits: Dict[str, str], kept: Path, new: Path) -> None:
    table = _gate(limits, kept, new)
    text = "\n".join(_line(row) for row in table.rows)
    item.add_report_section("call", "stepscope", text)
    if any(row["result"] == "regression" for row in table.rows):
        pytest.fail(f"{table.title}\n{text}", pytrace=False)


def _line(row: Dict[str, Any]) -> str:
    unit = row.get("unit") or ""
    numbers = "" if row.get("ratio") is None else f": {_shown(row['before'], unit)} -> {_shown(row['after'], unit)}, x{row['ratio']:.3f}"
    return f"{row['result']}: {row['metric']}{numbers}, allowed {row['allowed']}"


def _shown(value: float, unit: str) -> str:
    """A quantity with three digits: ``48.2 us``, ``1.50 MiB/step``."""
    for base, steps in (("ns", (("s", 1e9), ("ms", 1e6), ("us", 1e3))), ("bytes", (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)))):
        if unit == base or unit.startswith(f"{base}/"):
            larger = next(((name, size) for name, size in steps if abs(value) >= size), (base, 1))
            return f"{_digits(value / larger[1])} {larger[0]}{unit[len(base):]}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
