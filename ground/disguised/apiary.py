# defect: whether a flower was visited is asked of all visits by any(), for each flower that a bee meets
# kinds: list-search, full-scan-each-step, superlinear-lookup
# guilty: Diary.has, Bee.fly
import math
import sys


class Visit:
    def __init__(self, flower, day):
        self.flower, self.day = flower, day


class Diary:
    def __init__(self, searches):
        self.visits = [Visit(i * 3, i % 30) for i in range(500)]
        self.known = {visit.flower for visit in self.visits}
        self.searches = searches

    def has(self, flower):
        if self.searches:
            return any(visit.flower == flower for visit in self.visits)
        return flower in self.known


class Bee:
    def __init__(self, diary):
        self.diary, self.nectar = diary, 0.0

    def fly(self, step):
        for i in range(30):
            if not self.diary.has((i * 53 + step * 7) % 1500):
                self.nectar += 0.01
            for k in range(60):
                self.nectar += 1e-6 * math.cos(k * 0.1 + step)


bee = Bee(Diary(sys.argv[1] == "slow"))
for step in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60):
    bee.fly(step)
