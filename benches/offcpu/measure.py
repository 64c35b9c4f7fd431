"""Runs the program of benches/offcpu/run bare and under each tool, and prints the ratios."""

import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess

WORK, STEPSCOPE = os.environ["WORK"], os.environ["STEPSCOPE"]
AGGREGATED, THINNED = "stepscope", "without sums"
RUNS, MS, PAIRS, RATE = int(os.environ["RUNS"]), os.environ["MS"], os.environ["PAIRS"], float(os.environ["RATE"])
PINNED = [shutil.which("taskset"), "-c", os.environ["CPU"]] if os.environ["CPU"] else []
BUILDS = {"no fp": "omit-frame-pointer", "fp": "no-omit-frame-pointer"}
OFFCPU = "tracepoint:sched:sched_switch { @start[args->prev_pid] = nsecs; $s = @start[args->next_pid]; if ($s) { @off[kstack, ustack] = sum(nsecs - $s); } }"


def tools():
    """The commands that run a program under each tool, by name."""
    found = {"bare": lambda command: command}
    record = [STEPSCOPE, "record", "--force", "-o"]
    found[AGGREGATED] = lambda command: [*record, f"{WORK}/{AGGREGATED}", "--", *command]
    found[THINNED] = lambda command: [*record, f"{WORK}/{THINNED}", "--single-waits", "--", *command]
    if shutil.which("perf"):
        found["perf sched"] = lambda command: ["perf", "sched", "record", "-q", "-o", f"{WORK}/sched", *command]
        switches = ["perf", "record", "-q", "-e", "context-switches", "-c", "1", "-o", f"{WORK}/perf"]
        found["perf fp"] = lambda command: [*switches, "-g", "--", *command]
    else:
        print("skipped: perf is not in PATH (Debian package: linux-perf)")
    if shutil.which("bpftrace"):
        found["bpftrace"] = lambda command: ["bpftrace", "-q", "-e", OFFCPU, "-c", " ".join(command)]
    else:
        print("skipped: bpftrace is not in PATH")
    # That of bpfcc-tools needs the kernel's headers, and this one does not.
    if bcc := shutil.which("offcputime", path=os.environ["PATH"] + ":/usr/sbin"):
        beside = f'{bcc} {math.ceil(float(MS) / 1000) + 4} > "{WORK}/bcc" 2> /dev/null & sleep 1.5; "$@"; kill -INT $!; wait'
        found["offcputime"] = lambda command: ["bash", "-c", beside, "bash", *command]
    else:
        print("skipped: offcputime is not in PATH (Debian package: libbpf-tools)")
    return found


def run(name, command):
    """CPU ns per token of the program, the same with the recorder, the same with all that the tool does, and switches per second."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = re.search(r"tokens (\d+) cpu_ns (\d+) switches (\d+)", done.stdout + done.stderr)
    if not printed:
        return None
    tokens, cpu_ns, switches = map(int, printed.groups())
    whole = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9
    recorder = 0
    if name in (AGGREGATED, THINNED):
        recorder = json.load(open(f"{WORK}/{name}/capture.json"))["recording_cost"]["cpu_ns"]
    return cpu_ns / tokens, (cpu_ns + recorder) / tokens, whole / tokens, switches * 1000 / float(MS)


def turns(program):
    """The turns of the program's loop between two tokens that make RATE switches in a second of CPU time: a token takes two."""
    if not RATE:
        return "0"
    trial = 1000
    fastest, slower = (statistics.median(run("bare", [*program, str(count)])[0] for _ in range(3)) for count in (0, trial))
    return str(max(0, round((2e9 / RATE - fastest) / (slower - fastest) * trial)))


def evidence(name):
    """Of the last capture: blocked time with a place, the share of the first function's waits, and the stacks that differed."""
    show = [STEPSCOPE, "show", f"{WORK}/{name}", "--view", "blocked", "--format", "json", "--thread", "asks"]
    show += ["--owned", "seventy", "--owned", "thirty"]
    table = json.loads(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
    table = table[0] if isinstance(table, list) else table
    rows = {row["function"]: row for row in table["rows"]}
    total = sum(row["blocked"] or 0 for row in rows.values())
    seventy, thirty = (rows.get(name, {"blocked": 0, "waits": 0}) for name in ("seventy", "thirty"))
    waits = seventy["waits"] + thirty["waits"]
    losses = json.load(open(f"{WORK}/{name}/capture.json"))["losses"]
    size = sum(entry.stat().st_size for entry in os.scandir(f"{WORK}/{name}"))
    placed = sum(row["blocked"] or 0 for row in (seventy, thirty))
    return {
        "placed": 100 * placed / max(total, 1),
        "70": 100 * seventy["waits"] / max(waits, 1),
        "differing": 100 * (losses.get("differing_stacks") or 0) / max(losses.get("checked_stacks") or 0, 1),
        "KiB": size / 1024,
    }


def main():
    available = tools()
    print(f"{'program':<16}{'tool':<13}{'switches/s':>11}{'program':>9}{'recording':>10}{'in all':>8}{'placed':>8}{'70':>7}{'differ':>8}{'KiB':>7}")
    for kind in os.environ["KINDS"].split():
        for build, flag in BUILDS.items():
            program = [*PINNED, f"{WORK}/{flag}", kind, PAIRS, MS]
            program.append(turns(program))
            costs = {name: [] for name in available}
            for _ in range(RUNS):
                for name, command in available.items():
                    if cost := run(name, command(program)):
                        costs[name].append(cost)
            bare = statistics.median(cost[0] for cost in costs["bare"])
            for name, of in costs.items():
                if not of:
                    print(f"{kind + ' ' + build:<16}{name:<13} failed")
                    continue
                own, recording, whole, rate = (statistics.median(values) for values in zip(*of))
                line = f"{kind + ' ' + build:<16}{name:<13}{rate:>11,.0f}{own / bare:>9.2f}{recording / bare:>10.2f}{whole / bare:>8.2f}"
                if name in (AGGREGATED, THINNED):
                    seen = evidence(name)
                    line += f"{seen['placed']:>8.1f}{seen['70']:>7.1f}{seen['differing']:>7.1f}%{seen['KiB']:>7.0f}"
                print(line)


main()
