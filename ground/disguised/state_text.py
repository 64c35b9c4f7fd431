# defect: the state is written as JSON and parsed again in each step
# kinds: values-through-text
# guilty: -
import json
import math
import sys

import stepscope_marks as marks


class World:
    def __init__(self, slow):
        self.slow = slow
        self.state = [{"x": i * 0.1, "y": i * 0.2, "angle": 0.5 + i} for i in range(100)]

    def snapshot(self):
        if self.slow:
            return json.loads(json.dumps(self.state))
        return [dict(one) for one in self.state]

    def step(self, time):
        for one in self.snapshot():
            one["x"] += math.sin(time)
        total = 0.0
        for i in range(4000):
            total += math.cos(time + i)
        return total


def main():
    world = World(sys.argv[1] == "slow")
    print("ready", flush=True)
    step = 0
    while True:
        marks.step(step * 0.01)
        world.step(step * 0.01)
        step += 1


main()
