"""Measures recordings with and without viewers; see `run`."""

import base64
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

stepscope, work, runs, *program = sys.argv[1:]
VARIANTS = ["no viewer", "viewer that reads", "viewer that never reads"]


def connect(address):
    """Opens the WebSocket of a viewer, whose address `view` printed."""
    port, token = re.search(r":(\d+)/\?token=(\S+)", address).groups()
    client = socket.create_connection(("127.0.0.1", int(port)))
    key = base64.b64encode(os.urandom(16)).decode()
    client.sendall(
        (
            f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: stepscope, token.{token}\r\n\r\n"
        ).encode()
    )
    answer = client.recv(64)
    assert b" 101 " in answer, answer
    return client


def read_all(client, received):
    """Takes what comes until the end."""
    while chunk := client.recv(1 << 16):
        received.append(len(chunk))


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record(variant):
    folder = Path(work) / "out"
    subprocess.run(["rm", "-rf", folder], check=True)
    started = time.monotonic()
    recorder = subprocess.Popen(
        [stepscope, "record", "-o", folder, "--", *program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    viewer, received = None, []
    if variant != "no viewer":
        while not (folder / "raw.log").exists():
            time.sleep(0.01)
        viewer = subprocess.Popen(
            [stepscope, "view", "--no-open", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        client = connect(viewer.stdout.readline())
        if variant == "viewer that reads":
            threading.Thread(target=read_all, args=(client, received), daemon=True).start()
    recorder.wait()
    wall_s = time.monotonic() - started
    viewer_s = cpu_s(viewer.pid) if viewer else 0.0
    if viewer:
        viewer.terminate()
        viewer.wait()
    info = json.loads((folder / "capture.json").read_text())
    info = info.get("info", info)
    losses, cost = info["losses"], info["recording_cost"]
    program_s = losses["cpu_time_ns"] / 1e9
    recorder_s = cost["cpu_ns"] / 1e9
    window_s = (info["end_ns"] - info["start_ns"]) / 1e9
    return {
        "program": program_s,
        "recorder": recorder_s,
        "both": program_s + recorder_s,
        "window": window_s,
        "wall": wall_s,
        "lost": losses.get("lost_records", 0),
        "viewer": viewer_s,
        "received": sum(received),
    }


rounds = []
for number in range(int(runs)):
    order = VARIANTS if number % 2 == 0 else VARIANTS[::-1]
    rounds.append({variant: record(variant) for variant in order})
    print(f"round {number + 1} of {runs}", file=sys.stderr)

print(f"{'':26}{'CPU: program + recorder':>25}{'least to most':>16}{'recorder':>11}{'time of run':>13}{'lost':>7}{'viewer CPU':>12}{'received':>11}")
for variant in VARIANTS:
    ratio = lambda key: statistics.median(one[variant][key] / one[VARIANTS[0]][key] for one in rounds)
    spread = [one[variant]["both"] / one[VARIANTS[0]]["both"] for one in rounds]
    middle = lambda key: statistics.median(one[variant][key] for one in rounds)
    print(
        f"{variant:26}{ratio('both'):>24.3f}x{min(spread):>9.3f}-{max(spread):.3f}x{ratio('recorder'):>10.3f}x{ratio('window'):>12.3f}x"
        f"{max(one[variant]['lost'] for one in rounds):>7}{middle('viewer'):>10.2f} s{middle('received') / 1e6:>8.2f} MB"
    )
