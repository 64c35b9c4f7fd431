# defect: each cycle lists the folder of missions and asks for the state of every file, to find a new one
# kinds: directory-scan, file-state-each-step
# guilty: -
import math
import os
import sys
import tempfile

SLOW = sys.argv[1:] == ["slow"]
folder = tempfile.mkdtemp(prefix="missions")
for i in range(300):
    with open(os.path.join(folder, f"mission_{i:04}.txt"), "w") as out:
        out.write("waypoint 1 2 3\n" * 3)


def newest():
    return max(os.path.getmtime(os.path.join(folder, name)) for name in os.listdir(folder))


def control(at):
    for i in range(6000):
        at += 1e-4 * math.sin(at + i)
    return at


at, cycle = 0.0, 0
while True:
    at = control(at)
    if SLOW or cycle % 1000 == 0:
        newest()
    cycle += 1
