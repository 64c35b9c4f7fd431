# defect: the whole state is copied deeply for each step's history, though little of it changes
# kinds: copies-each-step, allocations-each-step
# guilty: remember, main
import copy
import math
import sys


def remember(history, world, step, deep):
    if deep:
        history[step % 20] = copy.deepcopy(world)
    else:
        history[step % 20] = {"moved": world["moved"], "grains": dict(world["moved"])}


def move(world, step):
    total = 0.0
    for i in range(2500):
        total += math.sin(i * 0.01 + step) * math.sqrt(i)
    world["moved"] = {step % 90: total}
    world["grains"][step % 90]["x"] = total


def main():
    deep = sys.argv[1] == "slow"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60
    world = {"grains": [{"x": i * 0.1, "y": 0.0, "kind": "quartz"} for i in range(90)], "moved": {}}
    history = [None] * 20
    for step in range(steps):
        move(world, step)
        remember(history, world, step, deep)


main()
