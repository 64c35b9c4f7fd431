"""CPU time of monitors on the same processes: see run."""

import importlib.util
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PROCESSES, SECONDS = int(sys.argv[1]), float(sys.argv[2])
STEPSCOPE = os.environ["STEPSCOPE"]

WORK = r"""
import sys, threading, time
def wake():
    while True:
        time.sleep(0.5)
for _ in range(3):
    threading.Thread(target=wake, daemon=True).start()
busy = sys.argv[1] == "busy"
while True:
    if busy:
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass
    time.sleep(0.5)
"""

PSUTIL = r"""
import sys, time, psutil
processes = [psutil.Process(int(pid)) for pid in sys.argv[2:]]
end = time.time() + float(sys.argv[1])
while time.time() < end:
    for process in processes:
        with process.oneshot():
            process.cpu_times(); process.memory_info(); process.num_threads(); process.status()
            process.io_counters(); process.num_fds(); process.num_ctx_switches()
    time.sleep(1)
"""


def cpu_of(command, seconds, terminal=False):
    """CPU seconds of a command and its children until it ends, or is interrupted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if terminal:
        leader, follower = pty.openpty()
        drain = threading.Thread(target=lambda: read_all(leader), daemon=True)
        environment = {**os.environ, "TERM": "xterm", "LINES": "100", "COLUMNS": "160"}
        process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
        drain.start()
    else:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def read_all(descriptor):
    try:
        while os.read(descriptor, 1 << 16):
            pass
    except OSError:
        pass


def main():
    children = [
        subprocess.Popen([sys.executable, "-c", WORK, "busy" if index % 10 == 0 else "idle"]) for index in range(PROCESSES)
    ]
    pids = [str(child.pid) for child in children]
    folder = tempfile.mkdtemp()

    def stepscope(seconds):
        output = os.path.join(folder, "capture")
        flags = [flag for pid in pids for flag in ("--pid", pid)]
        return [STEPSCOPE, "monitor", *flags, "-d", f"{seconds}s", "-o", output, "--force"]

    def stepscope_all(seconds):
        return stepscope(seconds) + ["--segment", "10s"]

    def has(module):
        return importlib.util.find_spec(module) is not None

    def missing(what, package):
        print(f"skipped: {what}: it is missing ({package})")

    monitors = [("stepscope monitor", stepscope, False), ("stepscope monitor, segments of 10 s", stepscope_all, False)]
    if shutil.which("pidstat"):
        flags = ["-u", "-r", "-d", "-w"]
        monitors.append(("pidstat", lambda s: ["pidstat", *flags, "-p", ",".join(pids), "1", str(round(s))], False))
    else:
        missing("pidstat", "Debian package sysstat")
    if has("psutil"):
        monitors.append(("psutil, a loop", lambda s: [sys.executable, "-c", PSUTIL, str(s), *pids], False))
    else:
        missing("psutil", "pip install psutil")
    if shutil.which("psrecord"):
        own = str(os.getpid())
        monitors.append(
            ("psrecord", lambda s: ["psrecord", own, "--include-children", "--interval", "1", "--duration", str(s)], False)
        )
    else:
        missing("psrecord", "pip install psrecord")
    if shutil.which("htop"):
        monitors.append(("htop -d 10", lambda s: ["htop", "-d", "10", "-p", ",".join(pids)], True))
    else:
        missing("htop", "Debian package htop")

    try:
        time.sleep(3)
        print(f"{PROCESSES} processes of 4 threads, {SECONDS:.0f} s at 1 s, {os.cpu_count()} CPUs")
        print(f"{'monitor':<40} {'% of one CPU':>12} {'start, CPU s':>13}")
        for name, command, terminal in monitors:
            start = cpu_of(command(1), 3 if terminal else 20, terminal)
            whole = cpu_of(command(SECONDS), SECONDS + (0 if terminal else 20), terminal)
            span = SECONDS - (3 if terminal else 1)
            print(f"{name:<40} {100 * max(whole - start, 0) / span:>12.2f} {start:>13.2f}", flush=True)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
        shutil.rmtree(folder)


main()
