"""Runs action.yml, the GitLab template and the CMake module as a CI service would, on a small program with known counts.

    /usr/bin/python3 ci/exercise.py STEPSCOPE       # needs PyYAML and a C compiler; cmake and ctest for the last part

What services do themselves stands here in its simplest form: actions/cache is a folder, upload-artifact a copy, `gh` a
script that keeps comments in files, and of expressions only those that action.yml uses.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPSCOPE = Path(sys.argv[1]).resolve()

PROGRAM = """
#include <stdlib.h>
#include <time.h>
#define STEPSCOPE_MARKS 1
#include "stepscope.h"
int main(int argc, char **argv) {
    int allocations = atoi(argv[1]);
    struct timespec pause = { 0, 1000000 };
    for (int step = 0; step < 600; step++) {
        STEPSCOPE_STEP((double)step / 1000);
        for (int i = 0; i < allocations; i++) free(*(void *volatile *)&(void *){ malloc(64) });
        nanosleep(&pause, 0);
    }
}
"""

LAB = """
[record]
dimensions = ["heap", "resources"]
steady = { warmup_s = 0, duration_s = 5 }
[scenario.sim]
command = ["./sim", "100"]
step = "marks"
[variant.before]
[variant.after]
command = ["./sim", "%d"]
[ab]
baseline = "before"
candidate = "after"
runs = 2
[gate]
"heap.allocations" = "+5%%"
"""

ONE_VARIANT = LAB.split("[variant.before]")[0] + '[gate]\n"heap.allocations" = "+5%"\n'

GH = """#!/bin/sh
# `gh api` on a folder of comments: lists, changes and adds them.
echo "$@" >>"$GH_STORE/calls"
for last do case $last in body=@*) body=${last#body=@} ;; esac; done
case "$*" in
*PATCH*) cp "$body" "$GH_STORE/comment" ;;
*POST*) [ ! -e "$GH_STORE/comment" ] && cp "$body" "$GH_STORE/comment" ;;
*--jq*) [ -e "$GH_STORE/comment" ] && grep -q '^<!-- stepscope -->' "$GH_STORE/comment" && echo 4711 ;;
esac
true
"""


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


class Runner:
    """GitHub's runner, as far as action.yml needs it."""

    def __init__(self, folder):
        import yaml

        self.action = yaml.safe_load((ROOT / "action.yml").read_text())
        self.folder, self.cache, self.store = folder, folder / "cache", folder / "gh"
        self.store.mkdir()
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "gh").write_text(GH)
        (bin_folder / "gh").chmod(0o755)
        self.path = f"{bin_folder}:{STEPSCOPE.parent}:{os.environ['PATH']}"

    def job(self, workspace, event, reference, **inputs):
        """Runs the steps. Gives the exit code, the outputs of the step `run`, and what was uploaded."""
        declared = {name: str(one.get("default", "")) for name, one in self.action["inputs"].items()}
        context = {
            "inputs": declared | inputs,
            "github": {"event_name": event, "token": "secret", "run_id": "7", "event": {
                "repository": {"default_branch": "main"}, "pull_request": {"number": "12"}}},
            "runner": {"os": "Linux", "arch": "X64"},
            "steps": {},
        }
        uploaded, failed = {}, None
        for step in self.action["runs"]["steps"]:
            condition = str(step.get("if", "success()"))
            if failed and "always()" not in condition:
                continue
            if not self.holds(condition, context):
                continue
            if "uses" in step:
                self.service(step, context, workspace, uploaded)
                continue
            code, outputs = self.shell(step, context, workspace, reference)
            context["steps"][step.get("id", step["name"])] = {"outputs": outputs}
            if code and not step.get("continue-on-error"):
                failed = code
        return failed or 0, context["steps"]["run"]["outputs"], uploaded

    def value(self, text, context):
        found = context
        for part in text.strip().split("."):
            found = found.get(part, "") if isinstance(found, dict) else ""
        return found

    def fill(self, text, context):
        return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(self.value(match[1], context)), str(text))

    def holds(self, condition, context):
        for part in condition.split("&&"):
            part = part.strip()
            if part in ("always()", "success()"):
                continue
            left, operator, right = re.fullmatch(r"(\S+) (==|!=) '(.*)'", part).groups()
            if (str(self.value(left, context)) == right) != (operator == "=="):
                return False
        return True

    def shell(self, step, context, workspace, reference):
        assert step["shell"] == "bash"
        output, summary = self.folder / "output", workspace / "summary-of-the-job.md"
        output.write_text("")
        environment = {
            "PATH": self.path, "HOME": str(self.folder), "GH_STORE": str(self.store),
            "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_REPOSITORY": "owner/project", "GITHUB_REF": reference,
        } | {name: self.fill(value, context) for name, value in step.get("env", {}).items()}
        body = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.fill(step["run"], context)]
        code = subprocess.run(body, cwd=workspace, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode
        return code, dict(line.split("=", 1) for line in output.read_text().splitlines())

    def service(self, step, context, workspace, uploaded):
        name, given = step["uses"].split("@")[0], {key: self.fill(value, context) for key, value in step["with"].items()}
        if name == "actions/cache/restore" and self.cache.exists():
            shutil.copytree(self.cache, workspace / given["path"])
        elif name == "actions/cache/save":
            shutil.rmtree(self.cache, ignore_errors=True)
            shutil.copytree(workspace / given["path"], self.cache)
        elif name == "actions/upload-artifact":
            uploaded["artifact"] = sorted(path.name for path in (workspace / given["path"]).iterdir())
        elif name == "github/codeql-action/upload-sarif":
            uploaded["sarif"] = json.loads((workspace / given["sarif_file"]).read_text())


def workspace(folder, name, allocations):
    """A checkout with the program, whose variant `after` makes this number of allocations in each step."""
    place = folder / name
    place.mkdir()
    shutil.copy(folder / "sim", place)
    (place / "stepscope.toml").write_text(LAB % allocations)
    return place


def github(folder):
    runner = Runner(folder)
    place = workspace(folder, "variants", 120)
    code, outputs, uploaded = runner.job(place, "pull_request", "refs/pull/12/merge")
    check((code, outputs["result"]) == (1, "regression"), "action: 20 % more allocations are a regression")
    check("report.html" in uploaded["artifact"] and "gate.xml" in uploaded["artifact"], "action: uploads the report of a failed job")
    check(uploaded["sarif"]["version"] == "2.1.0", "action: uploads SARIF of a failed job")
    results = [result for run in uploaded["sarif"]["runs"] for result in run["results"]]
    check(all(result.get("locations") for result in results), "action: each finding has a place, or GitHub would refuse all")
    comment = (runner.store / "comment").read_text()
    check(comment.startswith("<!-- stepscope -->\n**Gate: regression") and "heap.allocations" in comment, "action: comments")
    check("Gate: regression" in (place / "summary-of-the-job.md").read_text(), "action: writes the summary of the job")
    code, outputs, _ = runner.job(workspace(folder, "fixed", 100), "pull_request", "refs/pull/12/merge")
    check((code, outputs["result"]) == (0, "pass"), "action: equal allocations pass")
    calls = (runner.store / "calls").read_text()
    check("Gate: pass" in (runner.store / "comment").read_text(), "action: changes its comment")
    check(calls.count("POST") == 1 and calls.count("PATCH") == 1, "action: has one comment")

    def of_branch(name, allocations, event, reference):
        place = workspace(folder, name, 0)
        (place / "stepscope.toml").write_text(ONE_VARIANT.replace("100", str(allocations)))
        return runner.job(place, event, reference, baseline="branch", runs="2")

    code, outputs, _ = of_branch("first", 100, "push", "refs/heads/main")
    check((code, outputs["kept"]) == (0, "yes"), "action: the default branch keeps the first baseline")
    code, outputs, uploaded = of_branch("change", 120, "pull_request", "refs/pull/13/merge")
    check((code, outputs["kept"]) == (1, "no"), "action: a branch is judged by the baseline and does not replace it")
    code, outputs, _ = of_branch("same", 100, "pull_request", "refs/pull/14/merge")
    check((code, outputs["result"]) == (0, "pass"), "action: equal counts of another job pass")
    place = folder / "broken"
    place.mkdir()
    code, outputs, _ = runner.job(place, "push", "refs/heads/main")
    check((code, outputs["result"]) == (3, "not-judged"), "action: a job without a lab file is not judged")


def gitlab(folder):
    import yaml

    job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".stepscope"]

    def run(place, **variables):
        environment = os.environ | {"PATH": f"{STEPSCOPE.parent}:{os.environ['PATH']}"}
        environment |= job["variables"] | {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"} | variables
        script = ["sh", "-e", "-c", "\n".join(job["script"])]
        return subprocess.run(script, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode

    place = workspace(folder, "gitlab", 120)
    code = run(place)
    cases = xml.etree.ElementTree.parse(place / job["artifacts"]["reports"]["junit"]).findall(".//testcase")
    check(code == 1 and len(cases) == 1 and cases[0].find("failure") is not None, "GitLab: a regression fails, and is in JUnit")
    check((place / job["artifacts"]["paths"][0] / "report.html").is_file(), "GitLab: the artifacts have the report")
    options = "--runs 2 --baseline " + job["cache"]["paths"][0]
    place = workspace(folder, "gitlab-branch", 100)
    (place / "stepscope.toml").write_text(ONE_VARIANT)
    check(run(place, STEPSCOPE_OPTIONS=options) == 0, "GitLab: the default branch keeps a baseline")
    (place / "stepscope.toml").write_text(ONE_VARIANT.replace("100", "120"))
    check(run(place, STEPSCOPE_OPTIONS=options, CI_COMMIT_BRANCH="change") == 1, "GitLab: a branch is judged by the baseline")


def ctest(folder):
    project = folder / "project"
    project.mkdir()
    shutil.copy(ROOT / "marks/c/stepscope.h", project)
    (project / "sim.c").write_text(PROGRAM)
    call = 'DIMENSIONS heap resources LIMITS "heap.allocations=+5%" RUNS 2 STEP marks'
    (project / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.16)
project(example C)
enable_testing()
find_package(Stepscope REQUIRED)
add_executable(sim sim.c)
target_link_libraries(sim rt pthread)
stepscope_add_benchmark(same COMMAND sim 100 AGAINST sim 100 {call})
stepscope_add_benchmark(more COMMAND sim 120 AGAINST sim 100 {call})
stepscope_add_benchmark(kept COMMAND sim 100 BASELINE ${{CMAKE_BINARY_DIR}}/baseline {call})
add_test(NAME unrelated COMMAND sim 0)
""")
    build = project / "build"

    def run(*command):
        return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    configured = run("cmake", "-S", project, "-B", build, f"-DStepscope_DIR={ROOT / 'cmake'}", f"-DSTEPSCOPE_PROGRAM={STEPSCOPE}")
    check(configured.returncode == 0, f"CMake: finds the package{'' if configured.returncode == 0 else configured.stdout}")
    built = run("cmake", "--build", build)
    check(built.returncode == 0, f"CMake: builds{'' if built.returncode == 0 else built.stdout}")
    kept = run("cmake", "--build", build, "--target", "stepscope-baseline")
    check(kept.returncode == 0 and (build / "baseline").is_dir(), "CMake: keeps baselines")
    tested = run("ctest", "--test-dir", build, "-L", "benchmark", "--output-on-failure")
    results = dict(re.findall(r"Test +#\d+: (\S+) \.+\W*(Passed|Failed)", tested.stdout))
    expected = {"stepscope.same": "Passed", "stepscope.more": "Failed", "stepscope.kept": "Passed"}
    check(results == expected, f"CTest: the gate is the result of the test, {results}")
    check("heap.allocations" in tested.stdout, "CTest: the output of a failed test says which limit is broken")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sim.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O1", f"-I{ROOT / 'marks/c'}", "sim.c", "-o", "sim", "-lrt", "-lpthread"], cwd=folder, check=True)
        try:
            import yaml  # noqa: F401
        except ImportError:
            print("skipped: action.yml and the GitLab template: Python has no module yaml (Debian: python3-yaml)")
        else:
            github(folder)
            gitlab(folder)
        if shutil.which("cmake") and shutil.which("ctest"):
            ctest(folder)
        else:
            print("skipped: the CMake module: cmake is missing")


main()
