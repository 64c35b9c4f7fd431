"""CPU time of a step without and with recorders, in turns. See `run`."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STEPSCOPE, PYTHON, PY_SPY, ROUNDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
HERE = Path(__file__).parent
STEPS = {"mujoco": 80_000, "pybullet": 8_000, "simpy": 150_000, "mesa": 8_000, "gymnasium": 60_000, "calls": 100_000}


def recorders(folder):
    record = [STEPSCOPE, "record", "--force", "-o", str(folder / "bench.capture")]
    spy = [PY_SPY, "record", "--format", "raw", "--output", str(folder / "bench.raw")]
    yield "alone", []
    yield "record --no-python", [*record, "--no-python", "--"]
    yield "record", [*record, "--"]
    if os.access(PY_SPY, os.X_OK):
        yield "py-spy, 100 Hz", [*spy, "--rate", "100", "--"]
        yield "py-spy --native, 100 Hz", [*spy, "--native", "--rate", "100", "--"]
        yield "py-spy --native, 1000 Hz", [*spy, "--native", "--rate", "1000", "--"]


def step_us(command):
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line.split()[1] for line in output.stdout.splitlines() if line.startswith("step ")]
    if not found:
        raise RuntimeError(output.stderr.strip().splitlines()[-1] if output.stderr.strip() else "no output")
    return float(found[0])


with tempfile.TemporaryDirectory() as folder:
    ways = dict(recorders(Path(folder)))
    print("simulation\trecorder\tCPU us per step (median)\tratio to alone (median of rounds)\tlowest\thighest")
    for name in sys.argv[5:] or STEPS:
        program = [PYTHON, str(HERE / "steps.py"), name, str(STEPS[name])]
        if subprocess.run([PYTHON, "-c", f"import {name}" if name != "calls" else ""], capture_output=True, check=False).returncode:
            print(f"skipped: {name}: {PYTHON} has no module of that name")
            continue
        times = {way: [] for way in ways}
        for number in range(ROUNDS):
            # In turns, each round in another order: the machine's speed changes.
            order = list(ways)
            for way in order[number % len(order) :] + order[: number % len(order)]:
                times[way].append(step_us(ways[way] + program))
        for way, values in times.items():
            ratios = sorted(value / alone for value, alone in zip(values, times["alone"]))
            print(
                f"{name}\t{way}\t{statistics.median(values):.2f}\t{statistics.median(ratios):.3f}\t{ratios[0]:.3f}\t{ratios[-1]:.3f}",
                flush=True,
            )
