#!/usr/bin/env python3
"""Compares a capture with what `perf record` sees of the same scenario.

    against_perf.py [-n ROWS] [--phase loading] LAB SCENARIO RUN

LAB is an example's stepscope.toml, RUN the folder that `stepscope run` made of it. Launches the scenario again,
records the phase with perf (cpu-clock, DWARF stacks), and prints Markdown tables of the shares of CPU time that both
see: first the functions with the largest own share, then those with the largest inclusive one.
Needs `perf` (Debian 12: apt-get install -y linux-perf) and the right to use it. `STEPSCOPE` names the program.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

FREQUENCY_HZ = 997
STACK_BYTES = 32768


def shares_of_stepscope(capture: pathlib.Path) -> tuple[dict, dict, int]:
    """Own and inclusive shares by function, in percent, and the CPU time sampled, in ns."""
    program = os.environ.get("STEPSCOPE", "stepscope")
    command = [program, "show", capture, "--view", "hotspots", "--format", "json"]
    table = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    own, inclusive = collections.Counter(), collections.Counter()
    for row in table["rows"]:
        own[plain(row["function"])] += row["self"]
        inclusive[plain(row["function"])] += row["inclusive"]
    total = sum(own.values())
    percent = lambda weights: {name: 100 * weight / total for name, weight in weights.items()}
    return percent(own), percent(inclusive), total


def plain(name: str) -> str:
    """A name without what tells overloads apart, and without libc's own names for what it exports."""
    name = re.sub(r" const$|\[abi:cxx11\]|@+GLIBC_[0-9.]+$|\.llvm\.[0-9]+$", "", name.strip())
    name = re.sub(r"^__(GI_)?_*libc_(?=(malloc|free|calloc|realloc)$)", "", name)
    return {"cfree": "free", "__libc_start_main_impl": "__libc_start_main"}.get(name, name)


def stacks_of_perf(data: pathlib.Path):
    """The functions of each sample, leaf first."""
    command = ["perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
        stack = []
        for line in script.stdout:
            if line[0].isspace() and (words := line.split(maxsplit=1)):
                stack.append(plain(words[1]) if len(words) > 1 else "[unknown]")
            elif stack:
                yield stack
                stack = []
        if stack:
            yield stack


def shares_of_perf(data: pathlib.Path) -> tuple[dict, dict, int]:
    """Own and inclusive shares by function, in percent, and the number of samples."""
    own, inclusive, total = collections.Counter(), collections.Counter(), 0
    for stack in stacks_of_perf(data):
        total += 1
        own[stack[0]] += 1
        inclusive.update(set(stack))
    percent = lambda counts: {name: 100 * count / total for name, count in counts.items()}
    return percent(own), percent(inclusive), total


def record_with_perf(lab: pathlib.Path, name: str, phase: str, data: pathlib.Path) -> None:
    """Launches the scenario and records it until it is ready, or, once it is ready and warm, its steady phase."""
    settings = tomllib.loads(lab.read_text())
    scenario, steady = settings["scenario"][name], settings["record"]["steady"]
    command = [lab.parent / scenario["command"][0], *scenario["command"][1:]]
    perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY_HZ)]
    perf += ["--call-graph", f"dwarf,{STACK_BYTES}", "-o", data]
    if phase == "loading":
        command = [*perf, "--", *command]
    with subprocess.Popen(command, cwd=lab.parent, stdout=subprocess.PIPE, text=True) as run:
        try:
            while scenario["ready"]["log"] not in (line := run.stdout.readline()):
                if not line:
                    sys.exit(f"{name} ended before it was ready")
            if phase == "steady":
                time.sleep(steady["warmup_s"])
                rest = ["-p", str(run.pid), "--", "sleep", str(steady["duration_s"])]
                subprocess.run([*perf, *rest], check=True)
        finally:
            # perf ends what it launched, and completes its file.
            run.send_signal(signal.SIGINT)
            run.communicate()


def rows_of(ours: dict, theirs: dict, count: int) -> list:
    # Functions around all samples are left out.
    shown = [name for name in {*ours, *theirs} if min(ours.get(name, 0), theirs.get(name, 0)) < 99]
    names = sorted(shown, key=lambda name: (-max(ours.get(name, 0), theirs.get(name, 0)), name))
    return [f"| `{name}` | {ours.get(name, 0):.1f} | {theirs.get(name, 0):.1f} |" for name in names[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=10, metavar="ROWS")
    parser.add_argument("--phase", choices=("loading", "steady"), default="steady")
    parser.add_argument("lab", type=pathlib.Path)
    parser.add_argument("scenario")
    parser.add_argument("run", type=pathlib.Path)
    asked = parser.parse_args()
    own, inclusive, sampled_ns = shares_of_stepscope(asked.run / asked.scenario / "base" / asked.phase)
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "perf.data")
        record_with_perf(asked.lab.resolve(), asked.scenario, asked.phase, data)
        perf_own, perf_inclusive, perf_samples = shares_of_perf(data)
    print(f"{asked.scenario}, {asked.phase}: {sampled_ns / 1e9:.2f} s of CPU time by Stepscope, {perf_samples / FREQUENCY_HZ:.2f} s by perf\n")
    for title, ours, theirs in ("own", own, perf_own), ("inclusive", inclusive, perf_inclusive):
        print(f"| function ({title} share, %) | Stepscope | perf |\n|---|--:|--:|")
        print("\n".join(rows_of(ours, theirs, asked.n)), end="\n\n")


if __name__ == "__main__":
    main()
