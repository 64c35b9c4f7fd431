# defect: the track is an array that is copied to be one point longer, at each step
# kinds: copies-each-step, allocations-each-step
# guilty: Track.add
# options: --with python
# needs: numpy
import sys

import numpy as np

SLOW = sys.argv[1:] == ["slow"]


class Track:
    def __init__(self):
        self.points = np.zeros((60000, 3))
        self.used = 0

    def add(self, point):
        if SLOW:
            self.points = np.vstack([self.points[1:], point])
        else:
            self.points[self.used % len(self.points)] = point
            self.used += 1


def filter_state(state):
    for _ in range(10):
        state = state + 1e-3 * np.sin(state)
    return state


track, state = Track(), np.zeros(5000)
while True:
    state = filter_state(state)
    track.add(state[:3])
