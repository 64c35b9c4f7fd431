"""Runs the program of benches/heap/many bare and recorded; prints memory, CPU time and files, and compares the counts."""

import json
import os
import re
import subprocess
import sys
import threading
import time

WORK, COUNT, THREADS = sys.argv[1:4]
STEPSCOPE = os.environ["STEPSCOPE"]
BAR_MB = 500


def run(command):
    """What a program prints of itself, its CPU seconds with its children's, and the largest RSS of the first process in KiB."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    largest = 0

    def watch():
        nonlocal largest
        while child.poll() is None:
            try:
                with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
                    if found := re.search(r"VmHWM:\s+(\d+)", status.read()):
                        largest = int(found[1])
            except OSError:
                pass
            time.sleep(0.05)

    before = os.times()
    watcher = threading.Thread(target=watch)
    watcher.start()
    out, errors = child.communicate()
    watcher.join()
    after = os.times()
    if child.returncode != 0:
        sys.exit(errors)
    printed = {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", out)}
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return printed, cpu, largest


def main():
    program = [f"{WORK}/many", COUNT, THREADS]
    bare, bare_cpu, _ = run(program)
    start = time.monotonic()
    printed, cpu, recorder_kib = run([STEPSCOPE, "record", "--with", "heap", "-o", f"{WORK}/out", "--", *program])
    wall = time.monotonic() - start
    program_mb, recorder_mb = (kib * 1024 / 1e6 for kib in (printed["rss_kib"] - bare["rss_kib"], recorder_kib))
    print(f"{printed['calls']:,} allocations in {THREADS} threads, recorded in {wall:.0f} s")
    print(f"CPU: {bare_cpu:.1f} s bare, {cpu:.1f} s recorded; {(cpu - bare_cpu) / printed['calls'] * 1e9:.0f} ns an allocation more")
    total = program_mb + recorder_mb
    print(f"memory: program {bare['rss_kib'] * 1024 / 1e6:.1f} MB bare and {program_mb:.1f} MB more recorded, recorder {recorder_mb:.1f} MB")
    with open(f"{WORK}/out/capture.json", encoding="utf-8") as file:
        cost = json.load(file)["recording_cost"]
    size = sum(entry.stat().st_size for entry in os.scandir(f"{WORK}/out"))
    print(f"log {cost['log_bytes'] / 1e6:.1f} MB, capture {size / 1e6:.1f} MB, finishing {cost['finish_cpu_ns'] / 1e9:.2f} CPU-s")
    shown = subprocess.run([STEPSCOPE, "show", f"{WORK}/out", "--view", "heap", "--format", "json"], capture_output=True, text=True, check=True)
    rows = next(table["rows"] for table in json.loads(shown.stdout)["tables"] if table["table"] != "heap_totals")
    work = [row for row in rows if "Worker::work" in row["function"]]
    counted = {name: sum(row[name] for row in work) for name in ("calls", "bytes", "temporary")}
    failed = total >= BAR_MB
    for name, value in counted.items():
        print(f"{name}: {value:,} counted, {printed[name]:,} made")
        failed |= value != printed[name]
    sys.exit(failed)


main()
