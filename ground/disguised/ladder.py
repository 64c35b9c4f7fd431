# defect: the height of each rung is summed up to the top again, by following parents
# kinds: chain-climbed-each-time
# guilty: Rung.height, Ladder.sway
import math
import sys


class Rung:
    def __init__(self, above):
        self.above, self.gap, self.place = above, 0.3, 0.0

    def height(self):
        total, rung = 0.0, self
        while rung is not None:
            total = total + rung.gap
            rung = rung.above
        return total


class Ladder:
    def __init__(self, rungs, climbs):
        self.rungs, self.climbs = [], climbs
        for i in range(rungs):
            self.rungs.append(Rung(self.rungs[-1] if i % 60 else None))

    def sway(self, step):
        for i, rung in enumerate(self.rungs):
            rung.gap = 0.3 + 0.01 * math.sin(step * 0.1 + i) * math.cos(i) + math.sqrt(i) * 1e-6
            above = rung.above.place if rung.above else 0.0
            rung.place = rung.height() if self.climbs else above + rung.gap


ladder = Ladder(360, sys.argv[1] == "slow")
for step in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60):
    ladder.sway(step)
