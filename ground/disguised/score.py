"""Scores `stepscope diagnose` on the programs of this folder. See README.md.

    STEPSCOPE=.../stepscope python3 score.py FOLDER [NAME...]

FOLDER takes the compiled programs, the lab file and the run. With RECORD_SECONDS in the environment, each recording is that
long (default: 4). With AGAIN, the run that is in FOLDER is diagnosed again, and nothing is recorded. With AS_A_USER, there is no
lab file: `record -- PROGRAM` and `diagnose`, as somebody does who has just installed it. With DEEPEN, `diagnose --deepen` runs each
program again, too. Programs that do not print `ready` are
always recorded so. PYTHON is the interpreter for programs that need packages.
"""

import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MARKS = HERE.parent.parent / "marks"
STEPSCOPE = os.path.realpath(os.environ["STEPSCOPE"])
SECONDS = os.environ.get("RECORD_SECONDS", "4")
AS_A_USER = bool(os.environ.get("AS_A_USER"))
PYTHON = ["python3.11", "python3"]

# Findings above this percent of the step, or of loading, count.
MOST_OF_CONTROL = 3.0


class Subject:
    """A program, and what is wrong with it: from the comments at its top."""

    def __init__(self, source):
        self.source = source
        self.name = source.stem
        header = dict(re.findall(r"^(?://|#) (\w+): (.*)$", source.read_text(), re.M))
        self.defect = header["defect"]
        self.kinds = [kind.strip() for kind in header["kinds"].split(",")]
        # Without a defect, all of its findings are false.
        self.has_defect = self.kinds != ["-"]
        self.guilty = [] if header["guilty"] == "-" else [name.strip() for name in header["guilty"].split(",")]
        self.phase = header.get("phase", "steady")
        self.build = header.get("build", "-O2 -g").split()
        # The options of the compiler without the defect, if those are the defect.
        self.mended = header.get("mended")
        self.libraries = header.get("libraries", "").split()
        self.strip = header.get("strip")
        self.options = header.get("options", "").split()
        # A batch program ends by itself before that.
        self.seconds = header.get("seconds", SECONDS)
        self.needs = header.get("needs", "").split()
        self.is_plain = AS_A_USER or not re.search(r"[\"']ready|loop\.hpp", source.read_text())

    def missing(self):
        """What the program needs and this machine lacks; None if there is all."""
        for need in self.needs:
            if not self.has(need):
                return need
        return "python3" if self.source.suffix == ".py" and self.python() is None else None

    def has(self, need):
        """Whether there is this file, or package of C or C++; of a program in Python this program or module."""
        if "/" in need:
            return os.path.exists(need)
        if self.source.suffix != ".py":
            return bool(shutil.which("pkg-config")) and subprocess.call(["pkg-config", "--exists", need]) == 0
        python = self.python()
        imports = lambda: subprocess.call([python, "-c", f"import {need}"], stderr=subprocess.DEVNULL) == 0
        return bool(shutil.which(need)) or (python is not None and imports())

    def python(self):
        """The interpreter, by its path."""
        python = next(filter(None, map(shutil.which, PYTHON)), None)
        return os.environ.get("PYTHON", python) if self.needs else python

    def packages(self, question):
        """The compiler's options for packages, by `pkg-config`."""
        packages = [need for need in self.needs if "/" not in need]
        return subprocess.check_output(["pkg-config", question, *packages], text=True).split() if packages else []

    def command(self, folder):
        """The program with its arguments but the setting."""
        if self.source.suffix == ".py":
            python = self.python()
            if self.needs:
                return [python, str(self.source)]
            # A shim is a shell script, which would be recorded, too.
            python = subprocess.check_output([python, "-c", "import sys; print(sys.executable)"], text=True).strip()
            return [os.path.realpath(python), str(self.source)]
        program = folder / self.name
        if os.environ.get("AGAIN"):
            return [str(program)]
        if self.source.suffix == ".rs":
            subprocess.check_call(["rustc", "--edition=2021", "-Copt-level=3", "-g", self.source, "-o", program])
        else:
            compiler = ["gcc"] if self.source.suffix == ".c" else ["g++", "-std=c++20"]
            for build, output in [(self.build, program), ((self.mended or "").split(), f"{program}_mended")]:
                flags = ["-Wall", "-DSTEPSCOPE_MARKS=1", f"-I{MARKS / 'c'}", "-pthread", *self.packages("--cflags"), *build]
                if build:
                    libraries = [*self.libraries, *self.packages("--libs")]
                    subprocess.check_call([*compiler, *flags, self.source, "-o", output, *libraries, "-lm"])
        if self.strip:
            subprocess.check_call(["strip", *([] if self.strip == "all" else [self.strip]), program])
        return [str(program)]

    def is_right(self, finding):
        """Whether a finding is of a right kind and names a guilty function."""
        name = re.sub(r"\(.*", "", finding["function"] or "")
        name = re.sub(r"\[abi:\w+\]", "", name)
        name = name.removesuffix("::{{closure}}")
        name = re.sub(r"^py::([^:]*):/.*", r"\1", name)
        is_guilty = name in self.guilty or without_parameters(name) in map(without_parameters, self.guilty)
        return finding["kind"] in self.kinds and (not self.guilty or self.strip == "all" or is_guilty)


def without_parameters(name):
    """A function's name without parameters of templates."""
    return re.sub(r"<[^<>]*>", "", name)


def lab_file(subjects):
    text = f"""
[project]
name = "disguised"
owned = ["sim::*", "terrain::*", "Physics::*", "Drawing::*"]
[record]
phases = ["loading", "steady"]
loading = {{ timeout_s = 60 }}
steady = {{ warmup_s = 0.5, duration_s = {SECONDS} }}
[stop]
interrupt_s = 0
terminate_s = 2
"""
    for subject, command in subjects:
        for setting in ["slow", "fast"]:
            text += f"""
[scenario.{subject.name}_{setting}]
command = {json.dumps(command + [setting])}
env = {{ PYTHONPATH = {json.dumps(str(MARKS / 'python'))} }}
ready = {{ log = "ready" }}
step = "marks"
"""
    return text


def record(folder, subject, command):
    """Records both settings of a program, without a lab file."""
    environment = {**os.environ, "PYTHONPATH": str(MARKS / "python")}
    for setting in ["slow", "fast"]:
        capture = plain_capture(folder, subject, setting)
        shutil.rmtree(capture, ignore_errors=True)
        options = ["--duration", f"{subject.seconds}s", "--output", capture, *subject.options]
        program = [f"{command[0]}_mended"] if subject.mended and setting == "fast" else command
        call = [STEPSCOPE, "record", *options, "--", *program, setting]
        subprocess.check_call(call, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def plain_capture(folder, subject, setting):
    return folder / f"{subject.name}_{setting}.capture"


def findings(folder, subject, setting):
    capture = folder / "stepscope-runs" / "latest" / f"{subject.name}_{setting}" / "base" / subject.phase
    if subject.is_plain:
        capture = plain_capture(folder, subject, setting)
    deepen = ["--deepen"] if os.environ.get("DEEPEN") else []
    environment = {**os.environ, "PYTHONPATH": str(MARKS / "python")}
    out = subprocess.check_output([STEPSCOPE, "diagnose", *deepen, capture, "--format", "json"], env=environment)
    tables = json.loads(out)
    rows = tables["rows"] if isinstance(tables, dict) else tables[0]["rows"]
    return rows


def describe(finding):
    share = finding["gain_share"]
    gain = "no gain" if share is None else f"{share:.0f} %"
    return f"{finding['kind']} at `{finding['function'] or '-'}` ({gain}, {finding['confidence']})"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    if folder == HERE:
        sys.exit(f"{folder}: has the sources; give another folder for what is compiled and recorded")
    wanted = sys.argv[2:] or ["*"]
    sources = sorted(one for kind in ["c", "cpp", "py", "rs"] for one in HERE.glob(f"*.{kind}"))
    sources = [one for one in sources if one.name != pathlib.Path(__file__).name]
    subjects = [Subject(one) for one in sources if any(fnmatch.fnmatch(one.stem, want) for want in wanted)]
    lacking = [(one, one.missing()) for one in subjects]
    for subject, missing in lacking:
        if missing:
            print(f"skipped: {subject.name}: no {missing}")
    subjects = [(one, one.command(folder)) for one, missing in lacking if not missing]
    in_lab = [(one, command) for one, command in subjects if not one.is_plain]
    if not os.environ.get("AGAIN"):
        for subject, command in subjects:
            if subject.is_plain:
                record(folder, subject, command)
        if in_lab:
            (folder / "stepscope.toml").write_text(lab_file(in_lab))
            subprocess.check_call([STEPSCOPE, "run"], cwd=folder, stdout=subprocess.DEVNULL)
    recalled = silent = 0
    print("| program | recall | first findings | control |\n|---|---|---|---|")
    for subject, _ in subjects:
        slow, fast = findings(folder, subject, "slow"), findings(folder, subject, "fast")
        right = bool(slow) and subject.has_defect and subject.is_right(slow[0])
        control = fast if subject.has_defect else slow + fast
        false = [one for one in control if (one["gain_share"] or 0) > MOST_OF_CONTROL]
        recalled += right
        silent += not false
        first = "; ".join(map(describe, slow[:2])) or "nothing"
        recall = "yes" if right else "no" if subject.has_defect else "no defect"
        print(f"| `{subject.name}` | {recall} | {first} | {'; '.join(map(describe, false)) or 'silent'} |")
    number = len(subjects)
    defects = sum(one.has_defect for one, _ in subjects)
    print(f"\nrecall {recalled} of {defects}; precision {silent} of {number}")


main()
