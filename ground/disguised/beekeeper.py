# defect: frames are computed by a pool of threads of the same interpreter, which take turns for its lock
# kinds: gil-wait
# guilty: Hive.forage, Hive.tend, Keeper.round
import concurrent.futures
import math
import sys

SLOW = len(sys.argv) > 1 and sys.argv[1] == "slow"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Hive:
    def __init__(self, number):
        self.bees = [(number + i * 0.3, i * 0.7) for i in range(400)]

    def forage(self, t):
        honey = 0.0
        for x, y in self.bees:
            for k in range(12):
                honey += math.sin(x * 0.1 + k + t) * math.cos(y * 0.2)
        return honey

    def tend(self, t):
        return self.forage(t) / len(self.bees)


class Keeper:
    def __init__(self):
        self.hives = [Hive(i) for i in range(6)]
        self.pool = concurrent.futures.ThreadPoolExecutor(3) if SLOW else None

    def round(self, t):
        if self.pool:
            return sum(self.pool.map(lambda hive: hive.tend(t), self.hives))
        return sum(hive.tend(t) for hive in self.hives)


def main():
    keeper = Keeper()
    step, honey = 0, 0.0
    while step != STEPS:
        honey += keeper.round(step * 0.01)
        step += 1
    print(honey)


main()
