# defect: each trolley's state is formatted by % and format() for a trace that is off, and dropped
# kinds: values-through-text, allocations-each-step
# guilty: Trolley.state, Station.trace, Station.move, Station.step, Trolley.label
import math
import sys


class Trolley:
    def __init__(self, number):
        self.number, self.x, self.y, self.load = number, float(number), 0.0, number % 7

    def label(self):
        return "T%04d" % self.number

    def state(self):
        return "{} at {:.3f}/{:.3f} with {} bags".format(self.label(), self.x, self.y, self.load)


class Station:
    def __init__(self, number, traces_all):
        self.trolleys = [Trolley(one) for one in range(number)]
        self.traces_all = traces_all
        self.verbose = False

    def trace(self, text):
        if self.verbose:
            print(text)

    def move(self, one, now):
        for k in range(10):
            one.x += 0.001 * math.sin(now + k * one.load)
            one.y += 0.001 * math.cos(one.x)
        if self.traces_all:
            self.trace("%8.3f: %s moved" % (now, one.state()))

    def step(self, now):
        for one in self.trolleys:
            self.move(one, now)


def main():
    station = Station(300, len(sys.argv) > 1 and sys.argv[1] == "slow")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    step = 0
    while step != steps:
        station.step(step * 0.01)
        step += 1
    print(station.trolleys[0].x)


main()
