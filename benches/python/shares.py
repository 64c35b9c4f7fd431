"""Shares of a program whose three functions take 70, 20 and 10 % of the time, as recorders see them, and what they cost.

usage: shares.py STEPSCOPE PYTHON PY_SPY ROUNDS
"""

import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from recorders import in_turns, recorders, step_us

STEPSCOPE, PYTHON, PY_SPY, ROUNDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
TRUTH = Path(__file__).parents[2] / "crates/record/tests/truth/shares.py"
# Runs it as it is, and says what it cost by its own clock.
RUN = "import runpy, sys, time; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__'); print('step', 1e6 * time.process_time())"
PROGRAM = [PYTHON, "-c", RUN, str(TRUTH), "1000"]
FUNCTIONS = {"physics": 70, "sensors": 20, "render": 10}


def stacks(way, folder):
    """Stacks as lines of frames and a weight."""
    if way.startswith("py-spy"):
        return Path(folder, "bench.raw").read_text(encoding="utf-8").splitlines()
    export = [STEPSCOPE, "export", str(Path(folder, "bench.capture")), "--format", "folded", "-o", str(Path(folder, "bench.folded"))]
    subprocess.run(export, check=True, capture_output=True)
    return Path(folder, "bench.folded").read_text(encoding="utf-8").splitlines()


def shares(lines):
    """Percent of the weight under `run` that each function has, and the percent of this weight with a native frame below."""
    weights, all_of, native = dict.fromkeys(FUNCTIONS, 0), 0, 0
    for line in lines:
        stack, _, weight = line.rpartition(" ")
        frames = [re.sub(r"^py::|[:(].*$", "", frame).strip() for frame in stack.split(";")]
        names = [frame.rpartition(".")[2] for frame in frames]
        if "run" not in names or not any(name in names for name in FUNCTIONS):
            continue
        all_of += int(weight)
        native += int(weight) * any("crc32" in name for name in names)
        for name in FUNCTIONS:
            weights[name] += int(weight) * (name in names)
    if not all_of:
        return None
    return [100 * weight / all_of for weight in weights.values()], 100 * native / all_of


with tempfile.TemporaryDirectory() as folder:
    ways = {way: command for way, command in recorders(STEPSCOPE, PY_SPY, folder) if way != "record --no-python"}
    times, seen = {way: [] for way in ways}, {}
    for way in in_turns(ways, ROUNDS):
        times[way].append(step_us(ways[way] + PROGRAM))
        if way != "alone":
            seen.setdefault(way, []).append(shares(stacks(way, folder)))
    print("recorder\tCPU ratio to alone (median of rounds)\tshares (true: 70 20 10)\tfarthest from the truth\twith the native function")
    for way, values in times.items():
        ratio = statistics.median(value / alone for value, alone in zip(values, times["alone"]))
        found = [one for one in seen.get(way, []) if one]
        if way == "alone" or not found:
            print(f"{way}\t{ratio:.3f}\t{'' if way == 'alone' else 'no stacks'}")
            continue
        medians = [statistics.median(one[0][index] for one in found) for index in range(len(FUNCTIONS))]
        farthest = max(abs(share - truth) for one in found for share, truth in zip(one[0], FUNCTIONS.values()))
        native = statistics.median(one[1] for one in found)
        print(f"{way}\t{ratio:.3f}\t{' '.join(f'{share:.1f}' for share in medians)}\t{farthest:.1f} points\t{native:.0f} %")
