#!/usr/bin/env python3
"""Runs on a real one-node Slurm, a real local Ray, and ssh to this machine. `./dev cluster` runs this.

usage: cluster.py STEPSCOPE FOLDER [ssh|slurm|ray]...

Every daemon is started here, with keys, ports and folders of its own, and ended by its process id. What is missing is skipped
by name.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LAB = """[project]
name = "cluster test"
[record]
phases = ["steady"]
dimensions = ["cpu"]
steady = { warmup_s = 0, duration_s = 1 }
[scenario.spin]
command = ["sh", "-c", "while :; do :; done"]
ready = { after_s = 0.2 }
[variant.before]
[variant.after]
env = { CHANGED = "1" }
"""
# A second scenario that lasts longer than the limit of its task. Its program ends with what started it: a node that dies takes that along.
LONG = """[scenario.long]
command = ["sh", "-c", "while kill -0 $PPID 2>/dev/null; do :; done"]
ready = { after_s = 0.2 }
record = { steady = { duration_s = 600 } }
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(what, seconds=120):
    for _ in range(seconds * 5):
        if what():
            return True
        time.sleep(0.2)
    return False


class Test:
    def __init__(self, stepscope, folder):
        self.stepscope, self.folder, self.daemons = stepscope, folder, []
        (folder / "stepscope.toml").write_text(LAB)
        (folder / "long.toml").write_text(LAB + LONG)

    def start(self, *command, **options):
        log = open(self.folder / f"{Path(str(command[0])).name}.log", "a")
        options = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, **options}
        self.daemons.append(subprocess.Popen([str(part) for part in command], start_new_session=True, **options))
        return self.daemons[-1]

    def stop(self, daemon):
        try:
            os.killpg(daemon.pid, signal.SIGTERM)
            daemon.wait(20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            daemon.kill()
            daemon.wait()

    def stop_all(self):
        for daemon in reversed(self.daemons):
            self.stop(daemon)
        self.daemons = []

    def command(self, name, *arguments, lab="stepscope.toml"):
        return [self.stepscope, "run", lab, "-o", self.folder / f"runs-{name}", "--format", "json", *arguments]

    def run(self, name, *arguments, lab="stepscope.toml", env=None, code=0):
        done = subprocess.run([str(part) for part in self.command(name, *arguments, lab=lab)], cwd=self.folder, env=env,
                              capture_output=True, text=True)
        assert done.returncode == code, (name, done.returncode, done.stdout[-500:], done.stderr[-3000:])
        return self.info(name)

    def info(self, name):
        return json.loads((self.folder / f"runs-{name}/latest/run.json").read_text())

    def check(self, name, info, runs):
        """Every trial is recorded, with a capture, and both variants of a repetition ran on one node."""
        trials = info["trials"]
        assert len(trials) == 2 * runs and all(trial["result"]["outcome"] == "recorded" for trial in trials), trials
        nodes = {}
        for trial in trials:
            nodes.setdefault(trial["repetition"], set()).add(trial["node"])
            capture = self.folder / f"runs-{name}/latest/spin/{trial['variant']}/{trial['repetition']:02}/steady/capture.json"
            assert json.loads(capture.read_text())["scenario"] == "spin"
        assert all(len(found) == 1 for found in nodes.values()), nodes
        print(f"ok: {name}: {len(trials)} trials on {sorted(set.union(*nodes.values()))}", flush=True)

    def ab(self, name, *arguments, env=None):
        """The rounds of both variants, each on one node, and their comparison."""
        command = [self.stepscope, "ab", "stepscope.toml", "-o", self.folder / f"runs-{name}", "--runs", "4", "--baseline", "before",
                   "--candidate", "after", "--format", "json", *arguments]
        done = subprocess.run([str(part) for part in command], cwd=self.folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0 and json.loads(done.stdout), (done.stdout[-500:], done.stderr[-3000:])
        self.check(name, self.info(name), 4)

    def sweep(self, name, *arguments, env=None):
        """All points of a round are on one node."""
        text = LAB.split("[variant.before]")[0].replace("while :", ": {n}; while :") + "[sweep]\nn = [1, 2, 3]\n"
        (self.folder / "sweep.toml").write_text(text)
        command = [self.stepscope, "sweep", "sweep.toml", "-o", self.folder / f"runs-{name}", "--runs", "2", *arguments]
        done = subprocess.run([str(part) for part in command], cwd=self.folder, env=env, capture_output=True, text=True)
        trials = self.info(name)["trials"]
        assert done.returncode == 0 and len(trials) == 6, (done, trials)
        assert all(trial["result"]["outcome"] == "recorded" for trial in trials), trials
        nodes = {trial["repetition"]: {t["node"] for t in trials if t["repetition"] == trial["repetition"]} for trial in trials}
        assert all(len(found) == 1 for found in nodes.values()), nodes
        print(f"ok: {name}: {len(trials)} trials, rounds on {nodes}", flush=True)

    def killed(self, name, kill, *arguments, env=None, seconds=300):
        """A run whose long task is under way when `kill` is called. It ends with what it has; gives why trials are missing."""
        latest = self.folder / f"runs-{name}/latest"
        command = [str(part) for part in self.command(name, *arguments, "--attempts", "1", lab="long.toml")]
        running = subprocess.Popen(command, cwd=self.folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert wait_for(lambda: (latest / "long").exists(), 200), "the long task does not start"
        kill(latest)
        start = time.monotonic()
        _, stderr = running.communicate(timeout=seconds)
        found = reasons(self.info(name))
        assert running.returncode == 1 and found.count("recorded") == 2 and len(found) == 4, (found, stderr)
        assert all(reason != "not_run" for reason in found), found
        # The console says it, too: a line for each reason.
        missing = [line.strip() for line in stderr.splitlines() if "missing: " in line]
        assert missing, stderr
        print(f"ok: {name}: ended {time.monotonic() - start:.0f} s later: {missing}", flush=True)
        return found


def reasons(info):
    return [trial["result"].get("reason", trial["result"]["outcome"]) for trial in info["trials"]]


def ssh(test):
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    if not os.path.exists(server) or not shutil.which("ssh"):
        print("skipped: ssh: the server is not installed (Debian: openssh-server)")
        return
    folder, port = test.folder / "ssh", free_port()
    folder.mkdir()
    folder.chmod(0o700)
    for key in ["host", "user"]:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nUsePAM no\n"
        f"StrictModes no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin yes\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    daemon = test.start(server, "-D", "-e", "-f", folder / "config")
    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    assert wait_for(answers), "sshd does not answer"
    client = folder / "client"
    client.write_text(
        f"Host node1 node2 gone\nHostName 127.0.0.1\nPort {port}\nIdentityFile {folder}/user\nUserKnownHostsFile {folder}/known\n"
        f"StrictHostKeyChecking no\nLogLevel ERROR\nHost gone\nProxyCommand false\n")
    on = ["--on", "ssh", "--scheduler-argument", f"-F{client}"]
    test.check("ssh", test.run("ssh", *on, "--hosts", "node1,node2", "--runs", "2"), 2)
    test.check("ssh-copy", test.run("ssh-copy", *on, "--hosts", "node1,node2", "--runs", "2", "--copy"), 2)
    test.check("ssh-gone", test.run("ssh-gone", *on, "--hosts", "gone,node1", "--runs", "2"), 2)
    test.ab("ssh-ab", *on, "--hosts", "node1,node2")
    test.sweep("ssh-sweep", *on, "--hosts", "node1,node2")
    info = test.run("ssh-limit", *on, "--hosts", "node1", "--time-limit", "20", "--attempts", "1", lab="long.toml", code=1)
    found = reasons(info)
    assert found.count("recorded") >= 2 and any("time limit" in reason for reason in found), found
    print(f"ok: ssh: a task over its limit: {found}", flush=True)
    # The node dies: its server and all that it started.
    def kill(_):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(daemon.pid)], capture_output=True, text=True).stdout.split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        daemon.kill()

    found = test.killed("ssh-dies", kill, *on, "--hosts", "node1")
    assert any("was lost" in reason for reason in found), found
    test.stop_all()


def slurm(test):
    if not shutil.which("slurmctld") or not shutil.which("munged"):
        print("skipped: Slurm: not installed (Debian: slurm-wlm munge)")
        return
    if os.geteuid() != 0:
        print("skipped: Slurm: needs root")
        return
    folder = test.folder / "slurm"
    for name in ["", "state", "spool", "munge"]:
        (folder / name).mkdir()
    host, key = socket.gethostname().split(".")[0], folder / "munge/key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    for path in [folder, folder / "munge"]:
        path.chmod(0o755)
    munge = folder / "munge/socket"
    test.start("munged", "--foreground", "--force", f"--socket={munge}", f"--key-file={key}", f"--log-file={folder}/munge/log",
               f"--pid-file={folder}/munge/pid", f"--seed-file={folder}/munge/seed")
    assert wait_for(munge.exists), "munged does not start"
    ports = free_port(), free_port()
    (folder / "slurm.conf").write_text(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
ReturnToService=2
SlurmdTimeout=20
KillWait=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.txt
SlurmdLogFile={folder}/slurmd.txt
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=lab Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
    env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    controller = test.start("slurmctld", "-D", "-f", folder / "slurm.conf", env=env)
    node = test.start("slurmd", "-D", "-f", folder / "slurm.conf", env=env)
    idle = lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True).stdout
    assert wait_for(idle), (folder / "slurmctld.txt").read_text()[-2000:]
    test.check("slurm", test.run("slurm", "--on", "slurm", "--runs", "2", env=env), 2)
    test.ab("slurm-ab", "--on", "slurm", env=env)
    test.sweep("slurm-sweep", "--on", "slurm", env=env)
    # The node dies in the middle of a task: its daemon and the task are killed.
    def kill_task(latest):
        """What `slurmd` has started lives on without it."""
        pattern = f"{test.stepscope} task {latest.resolve()}"
        steps = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout.split()
        field = lambda pid, name: subprocess.run(["ps", "-o", f"{name}=", "-p", pid], capture_output=True, text=True).stdout.strip()
        for step in list(steps):
            # Between the task and `slurmstepd` is the script of the batch.
            parent = field(step, "ppid")
            while field(parent, "comm").startswith(("slurmstepd", "slurm_script")):
                steps.append(parent)
                parent = field(parent, "ppid")
        for step in set(steps):
            os.kill(int(step), signal.SIGKILL)

    def kill(latest):
        kill_task(latest)
        node.kill()

    found = test.killed("slurm-dies", kill, "--on", "slurm", env=env)
    assert any("failed" in reason or "without a result" in reason for reason in found), found
    # The node is back, and the run continues with what is missing: both variants of the long scenario, over their limit.
    test.start("slurmd", "-D", "-f", folder / "slurm.conf", env=env)
    assert wait_for(idle), "the node does not come back"
    latest = test.folder / "runs-slurm-dies/latest"
    done = subprocess.run([str(part) for part in [
        test.stepscope, "run", "--on", "slurm", "--resume", latest.resolve(), "--attempts", "1", "--time-limit", "60"]],
        cwd=test.folder, env=env, capture_output=True, text=True)
    found = reasons(json.loads((latest / "run.json").read_text()))
    assert done.returncode == 1 and found.count("recorded") == 2 and any("time limit" in reason for reason in found), (found, done)
    print(f"ok: slurm: resumed, a task over its limit: {found}", flush=True)
    # A controller that does not come back is the end of the run; the node lives on.
    found = test.killed("slurm-controller-dies", lambda _: controller.kill(), "--on", "slurm", env=env)
    assert any("squeue failed" in reason for reason in found), found
    kill_task(test.folder / "runs-slurm-controller-dies/latest")
    test.stop_all()


def ray(test):
    try:
        import ray as module
    except ImportError:
        print("skipped: Ray: not installed (pip install ray)")
        return
    tool = Path(sys.executable).parent / "ray"
    port = free_port()
    env = {**os.environ, "RAY_ADDRESS": f"127.0.0.1:{port}", "PATH": f"{tool.parent}:{os.environ['PATH']}", "RAY_DISABLE_METRICS": "1"}
    head = test.start(tool, "start", "--head", "--block", f"--port={port}", "--num-cpus=2", "--include-dashboard=false",
                      "--disable-usage-stats", f"--temp-dir={test.folder}/ray", env={k: v for k, v in env.items() if k != "RAY_ADDRESS"})
    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    assert wait_for(answers, 200), "Ray does not answer"
    time.sleep(10)
    test.check("ray", test.run("ray", "--on", "ray", "--runs", "2", env=env), 2)
    test.ab("ray-ab", "--on", "ray", env=env)
    info = test.run("ray-limit", "--on", "ray", "--time-limit", "20", "--attempts", "1", lab="long.toml", env=env, code=1)
    found = reasons(info)
    assert found.count("recorded") >= 2 and any("time limit" in reason for reason in found), found
    print(f"ok: ray: a task over its limit: {found}", flush=True)
    # The head dies in the middle of a task: its control store and its node.
    def kill(_):
        for name in ["gcs_server", "raylet"]:
            for pid in subprocess.run(["pgrep", "-f", f"/{name} .*{test.folder}/ray"], capture_output=True, text=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)

    found = test.killed("ray-head-dies", kill, "--on", "ray", env=env)
    assert any("Ray failed" in reason or "was lost" in reason for reason in found), found
    test.stop_all()


def main():
    stepscope, folder = (Path(part).resolve() for part in sys.argv[1:3])
    wanted = sys.argv[3:] or ["ssh", "slurm", "ray"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    test = Test(stepscope, folder)
    try:
        for name in wanted:
            start = time.monotonic()
            {"ssh": ssh, "slurm": slurm, "ray": ray}[name](test)
            print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    finally:
        test.stop_all()


main()
