"""CPU time of a step without and with recorders, in turns. See `run`."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from recorders import in_turns, recorders, step_us

STEPSCOPE, PYTHON, PY_SPY, ROUNDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
HERE = Path(__file__).parent
STEPS = {"mujoco": 80_000, "pybullet": 8_000, "simpy": 150_000, "mesa": 8_000, "gymnasium": 60_000, "calls": 100_000}


with tempfile.TemporaryDirectory() as folder:
    ways = dict(recorders(STEPSCOPE, PY_SPY, folder))
    print("simulation\trecorder\tCPU us per step (median)\tratio to alone (median of rounds)\tlowest\thighest")
    for name in sys.argv[5:] or STEPS:
        program = [PYTHON, str(HERE / "steps.py"), name, str(STEPS[name])]
        if subprocess.run([PYTHON, "-c", f"import {name}" if name != "calls" else ""], capture_output=True, check=False).returncode:
            print(f"skipped: {name}: {PYTHON} has no module of that name")
            continue
        times = {way: [] for way in ways}
        for way in in_turns(ways, ROUNDS):
            times[way].append(step_us(ways[way] + program))
        for way, values in times.items():
            ratios = sorted(value / alone for value, alone in zip(values, times["alone"]))
            print(
                f"{name}\t{way}\t{statistics.median(values):.2f}\t{statistics.median(ratios):.3f}\t{ratios[0]:.3f}\t{ratios[-1]:.3f}",
                flush=True,
            )
