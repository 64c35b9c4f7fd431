"""The recorders that are compared: how each is started, and what a program under it says."""

import os
import subprocess
from pathlib import Path


def recorders(stepscope, py_spy, folder):
    """Names and command lines. Ours writes `bench.capture`, py-spy `bench.raw`."""
    record = [stepscope, "record", "--force", "-o", str(Path(folder, "bench.capture"))]
    spy = [py_spy, "record", "--format", "raw", "--output", str(Path(folder, "bench.raw"))]
    yield "alone", []
    yield "record --no-python", [*record, "--no-python", "--"]
    yield "record", [*record, "--"]
    if os.access(py_spy, os.X_OK):
        yield "py-spy, 100 Hz", [*spy, "--rate", "100", "--"]
        yield "py-spy --native, 100 Hz", [*spy, "--native", "--rate", "100", "--"]
        yield "py-spy --native, 1000 Hz", [*spy, "--native", "--rate", "1000", "--"]


def step_us(command):
    """Runs a program that prints `step MICROSECONDS`."""
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line.split()[1] for line in output.stdout.splitlines() if line.startswith("step ")]
    if not found:
        raise RuntimeError(output.stderr.strip().splitlines()[-1] if output.stderr.strip() else "no output")
    return float(found[0])


def in_turns(ways, rounds):
    """Each way once a round, each round in another order: the machine's speed changes."""
    order = list(ways)
    for number in range(rounds):
        yield from order[number % len(order) :] + order[: number % len(order)]
