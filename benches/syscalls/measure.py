"""Runs the program of benches/syscalls/run bare and under each tool, and prints what a call costs more."""

import os
import re
import resource
import shutil
import statistics
import subprocess

WORK, STEPSCOPE = os.environ["WORK"], os.environ["STEPSCOPE"]
RUNS, CALLS = int(os.environ["RUNS"]), int(os.environ["CALLS"])
CALLS_IN_A_ROUND = {"ask": 1, "one": 4, "many": 3}
STRACE = "strace -c"
COUNT = "tracepoint:raw_syscalls:sys_enter { @start[tid] = nsecs; } tracepoint:raw_syscalls:sys_exit /@start[tid]/ { @calls[args->id] = count(); @ns[args->id] = sum(nsecs - @start[tid]); }"


def tools():
    """The commands that run a program under each tool, by name."""
    found = {"bare": lambda command: command}
    record = [STEPSCOPE, "record", "--force", "-o", f"{WORK}/capture"]
    found["stepscope"] = lambda command: [*record, "--with", "syscalls", "--", *command]
    others = {
        STRACE: lambda command: ["strace", "-f", "-c", "-o", f"{WORK}/strace", *command],
        "perf trace -s": lambda command: ["perf", "trace", "-s", "-o", f"{WORK}/perf", *command],
        "bpftrace": lambda command: ["bpftrace", "-q", "-e", COUNT, "-c", " ".join(command)],
    }
    for name, command in others.items():
        if shutil.which(name.split()[0]):
            found[name] = command
        else:
            print(f"skipped: {name.split()[0]} is not in PATH")
    return found


def run(command):
    """Wall ns of a call, and CPU ns of a call with all that the tool does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = re.search(r"calls (\d+) wall_ns (\d+) cpu_ns (\d+)", done.stdout + done.stderr)
    if not printed:
        return None
    calls, wall_ns, _ = map(int, printed.groups())
    whole = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9
    return wall_ns / calls, whole / calls


def main():
    available = tools()
    print(f"{'calls':<8}{'tool':<16}{'program':>9}{'in all':>9}{'program':>12}{'in all':>9}")
    print(f"{'':<8}{'':<16}{'µs':>9}{'µs':>9}{'of strace':>12}{'of strace':>9}")
    for kind in os.environ["KINDS"].split():
        rounds = CALLS // CALLS_IN_A_ROUND[kind]
        os.makedirs(f"{WORK}/many", exist_ok=True)
        for number in range(rounds if kind == "many" else 0):
            with open(f"{WORK}/many/{number}", "w", encoding="utf-8") as file:
                file.write("x")
        program = [f"{WORK}/program", kind, str(rounds), WORK]
        costs = {name: [] for name in available}
        for _ in range(RUNS):
            for name, command in available.items():
                if cost := run(command(program)):
                    costs[name].append(cost)
        own, whole = (statistics.median(values) for values in zip(*costs["bare"]))
        more = {name: [statistics.median(values) for values in zip(*of)] for name, of in costs.items() if of}
        more = {name: (wall - own, cpu - whole) for name, (wall, cpu) in more.items()}
        print(f"{kind:<8}{'bare':<16}{own / 1e3:>9.2f}{whole / 1e3:>9.2f}")
        for name in list(available)[1:]:
            if name not in more:
                print(f"{kind:<8}{name:<16} failed")
                continue
            line = f"{kind:<8}{name:<16}{more[name][0] / 1e3:>9.2f}{more[name][1] / 1e3:>9.2f}"
            if STRACE in more:
                line += "".join(f"{own / of:>{width}.3f}" for own, of, width in zip(more[name], more[STRACE], (12, 9)))
            print(line)


main()
