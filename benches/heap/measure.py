"""Runs the program bare and under each recorder, and prints medians. See `run`."""

import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

work, runs, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3]
stepscope = os.environ["STEPSCOPE"]
program = [f"{work}/program", steps]
record = [stepscope, "record", "--force", "-o", f"{work}/out", "--dimensions", "heap"]
commands = {
    "bare": program,
    "stepscope": record + ["--"] + program,
    "stepscope, samples of 512 KiB": record + ["--heap-every", "512KiB", "--"] + program,
}
if shutil.which("heaptrack"):
    commands["heaptrack"] = ["heaptrack", "-o", f"{work}/track"] + program


def cpu_seconds(command):
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, f"{work}/errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{command}: {open(f'{work}/errors').read()}")
    return usage.ru_utime + usage.ru_stime


def size(paths):
    return sum(os.path.getsize(path) for path in paths)


seconds = {name: [] for name in commands}
afterwards, written, calls = [], {}, {}
for _ in range(runs):
    for name, command in commands.items():
        spent = cpu_seconds(command)
        if name.startswith("stepscope"):
            cost = json.load(open(f"{work}/out/capture.json"))["recording_cost"]
            afterwards.append(cost["finish_cpu_ns"] / 1e9)
            spent -= afterwards[-1]
            written[name] = size(glob.glob(f"{work}/out/*"))
        elif name == "heaptrack":
            written[name] = size(glob.glob(f"{work}/track*"))
            found = re.search(r"allocations:\s+(\d+)", open(f"{work}/errors").read())
            calls[name] = int(found.group(1)) if found else None
        seconds[name].append(spent)

bare = statistics.median(seconds["bare"])
print(f"bare: {bare:.3f} CPU-s")
overheads = {}
for name in [name for name in commands if name != "bare"]:
    pairs = zip(seconds[name], seconds["bare"])
    overheads[name] = statistics.median(with_it - without for with_it, without in pairs)
    factor = (bare + overheads[name]) / bare
    print(f"{name}: +{overheads[name]:.3f} CPU-s ({factor:.2f}x), {written[name]:,} bytes")
print(f"naming and tables of stepscope, afterwards: {statistics.median(afterwards):.3f} CPU-s")
if "heaptrack" in overheads:
    print(f"stepscope / heaptrack: overhead {overheads['stepscope'] / overheads['heaptrack']:.2f} (bar: 0.33), "
          f"bytes {written['stepscope'] / written['heaptrack']:.2f} (bar: 0.5)")
