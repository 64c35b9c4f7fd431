#!/usr/bin/env python3
"""Builds real projects below `stepscope build`, and checks what it says.

    python3 benches/builds/check.py STEPSCOPE [FOLDER] [NAME...]

Sources come from Debian (`apt-get source`), or stand in FOLDER already. For each project and generator:

- the CPU time of all jobs against `times` of the shell that ran the build, within 2 %
- with clang and `--with-timing`: each header's time against ClangBuildAnalyzer's sums of the same files, computed here
- CPU time of the build with the recorder, and with `--with-timing`, over that without, in interleaved runs

What a machine lacks is skipped by name. Prints a table in Markdown, and exits with 1 if a check fails.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# NAME: (Debian source, folder below it, configure, build, clean, tools)
BULLET = ["-DBUILD_BULLET2_DEMOS=OFF", "-DBUILD_EXTRAS=OFF", "-DBUILD_UNIT_TESTS=OFF", "-DBUILD_CPU_DEMOS=OFF", "-DBUILD_OPENGL3_DEMOS=OFF",
          "-DBUILD_PYBULLET=OFF", "-DUSE_GLUT=OFF", "-DCMAKE_BUILD_TYPE=Release"]
NS3 = ["-DNS3_ENABLED_MODULES=core", "-DCMAKE_BUILD_TYPE=Release"]


def cmake(generator, compiler, options):
    c = {"g++": "gcc", "clang++": "clang"}[compiler]
    return ["cmake", "-G", generator, "-S", ".", "-B", "o", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_C_COMPILER={c}", *options]


PROJECTS = {
    "bullet-make-g++": ("bullet", "bullet*-*", cmake("Unix Makefiles", "g++", BULLET), ["make", "-j2", "-C", "o", "LinearMath"],
                        ["make", "-C", "o", "clean"], ["cmake", "make", "g++"]),
    "bullet-ninja-clang": ("bullet", "bullet*-*", cmake("Ninja", "clang++", BULLET), ["ninja", "-j2", "-C", "o", "LinearMath"],
                           ["ninja", "-C", "o", "clean"], ["cmake", "ninja", "clang++"]),
    "ns3-core-ninja-clang": ("ns3", "ns-allinone-*/ns-*", cmake("Ninja", "clang++", NS3), ["ninja", "-j2", "-C", "o", "libcore-obj"],
                             ["ninja", "-C", "o", "clean"], ["cmake", "ninja", "clang++"]),
    "ode-autotools": ("ode", "ode-*", ["sh", "-c", "./bootstrap >/dev/null 2>&1; ./configure --disable-demos --disable-asserts"],
                      ["make", "-j2"], ["make", "clean"], ["autoreconf", "libtoolize", "make", "g++"]),
    "stats-cargo": (None, "crates/stats", None, ["cargo", "build", "--offline", "-p", "stepscope-stats", "--target-dir", "o"],
                    ["rm", "-rf", "o"], ["cargo"]),
}


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **options)


def cpu_of(command, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(stepscope, capture, view, table):
    shown = run([stepscope, "show", capture, "--view", view, "--format", "json-compact"], "/", check=True)
    tables = json.loads(shown.stdout)
    tables = tables.get("tables", [tables])
    return next(one["rows"] for one in tables if one["table"] == table)


def seconds_of_times(text):
    """The sum of what `times` prints: two lines of `0m1.23s 0m0.45s`."""
    total = 0.0
    for word in " ".join(text.strip().splitlines()[-2:]).split():
        minutes, seconds = word.rstrip("s").split("m")
        total += 60 * float(minutes) + float(seconds)
    return total


def sums_of_sources(folder, root):
    """What ClangBuildAnalyzer adds up for headers: durations of `Source` events by path, in ns."""
    sums = defaultdict(int)
    for path in folder.glob("*.json"):
        trace = json.loads(path.read_text())
        if not isinstance(trace, dict):
            continue
        for event in trace["traceEvents"]:
            if event["name"] == "Source":
                sums[os.path.normpath(os.path.join(root, event["args"]["detail"]))] += event["dur"] * 1000
    return sums


def check(stepscope, name, root, spec, pairs):
    _, _, configure, build, clean, _ = spec
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        capture = str(scratch / "b.capture")
        if configure:
            shutil.rmtree(root / "o", ignore_errors=True)
            done = run(configure, root)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
        shell = ["sh", "-c", " ".join(build) + " >/dev/null 2>&1; times"]
        run(clean, root)
        done = run([stepscope, "build", "-o", capture, "--force", "--", *shell], root, check=True)
        counted = seconds_of_times(done.stdout.rsplit("\n", 2)[0])
        jobs = rows(stepscope, capture, "build", "build_jobs")
        unknown = [row["job"] for row in jobs if row["cpu"] is None]
        if unknown:
            print(f"{name}: no CPU time of {len(unknown)} of {len(jobs)} jobs: {', '.join(unknown[:5])}", file=sys.stderr)
        results["cpu"] = sum(row["cpu"] or 0 for row in jobs) / 1e9
        results["sum"] = results["cpu"] / counted
        results["units"] = sum(row["job_kind"].startswith("compile") for row in jobs)
        times = scratch / "times"
        run(clean, root)
        done = run([stepscope, "build", "--with-timing", "--keep-times", str(times), "-o", capture, "--force", "--", *build], root, check=True)
        results["says"] = next((line for line in done.stderr.splitlines() if line.startswith("1. ")), "")
        headers = rows(stepscope, capture, "headers", "headers")
        sums = sums_of_sources(times, root / "o")
        if sums:
            ours = {os.path.normpath(os.path.join(root, row["header"])): row["compiler_time"] for row in headers}
            worst = max(abs(ours.get(path, 0) - sums[path]) / sums[path] for path in sums)
            results["headers"] = (len(sums), worst)
        plain, recorded, timed = [], [], []
        for _ in range(pairs):
            for command, into in [
                (build, plain),
                ([stepscope, "build", "-o", capture, "--force", "--", *build], recorded),
                ([stepscope, "build", "--with-timing", "-o", capture, "--force", "--", *build], timed),
            ]:
                run(clean, root)
                into.append(cpu_of(command, root))
        run(clean, root)
        ratio = lambda several: statistics.median(one / base for one, base in zip(several, plain))
        if pairs:
            results["overhead"], results["with_timing"] = ratio(recorded), ratio(timed)
    return results


def source(package, pattern, folder):
    if package is None:
        return Path(__file__).resolve().parents[2] / pattern
    found = sorted(folder.glob(pattern))
    if not found:
        run(["apt-get", "source", package], folder)
        found = sorted(folder.glob(pattern))
    return next((one for one in found if one.is_dir()), None)


def main():
    stepscope = str(Path(sys.argv[1]).resolve())
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[3:] or list(PROJECTS)
    pairs = int(os.environ.get("PAIRS", "3"))
    failed = False
    print("| project | units | CPU | jobs / `times` | headers, largest difference | CPU with recorder | CPU with timing |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen:
        spec = PROJECTS[name]
        missing = [tool for tool in spec[5] if not shutil.which(tool)]
        root = None if missing else source(spec[0], spec[1], folder)
        if root is None:
            print(f"skipped: {name}: {'no ' + ', '.join(missing) if missing else 'no sources'}", file=sys.stderr)
            continue
        try:
            one = check(stepscope, name, root, spec, pairs)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(f"failed: {name}: {error} {getattr(error, 'stderr', '')}", file=sys.stderr)
            failed = True
            continue
        headers = one.get("headers")
        text = f"{headers[0]}, {100 * headers[1]:.3f} %" if headers else "-"
        over = [f"{one[key]:.3f}" if key in one else "-" for key in ("overhead", "with_timing")]
        print(f"| {name} | {one['units']} | {one['cpu']:.1f} s | {one['sum']:.4f} | {text} | {over[0]} | {over[1]} |", flush=True)
        print(f"{name}: {one['says']}", file=sys.stderr)
        if abs(one["sum"] - 1) > 0.02 or (headers and headers[1] > 0):
            print(f"failed: {name}: see the table", file=sys.stderr)
            failed = True
    sys.exit(failed)


main()
