# defect: the state of the whole bridge is copied deeply before each step, for an undo that nobody asks for
# kinds: copies-each-step, allocations-each-step
# guilty: Bridge.step
# options: --with python
import copy
import math
import sys

SLOW = sys.argv[1:] == ["slow"]


class Beam:
    def __init__(self, number):
        self.number, self.load, self.ends = number, 0.0, [number, number + 1]


class Bridge:
    def __init__(self):
        self.beams = [Beam(i) for i in range(120)]
        self.before = None

    def step(self, at):
        if SLOW:
            self.before = copy.deepcopy(self.beams)
        for beam in self.beams:
            for i in range(12):
                beam.load += 1e-3 * math.sin(at + beam.number + i)


bridge = Bridge()
at = 0
while True:
    bridge.step(at)
    at += 1
