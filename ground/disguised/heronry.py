# defect: the positions of the birds are made an array of floats again for each question, element by element, though they change once a step
# kinds: lists-to-arrays-each-step, small-arrays-each-step, same-work-again, allocations-each-step
# guilty: Sky.near, Sky.table, Heron.look, Sky.places
# gain: 21
# needs: numpy
# options: --with python
import math
import random
import sys

import numpy as np

SLOW = sys.argv[1:2] == ["slow"]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Heron:
    def __init__(self, number, chance):
        self.number = number
        self.x = chance.random() * 100
        self.y = chance.random() * 100
        self.heading = chance.random() * 6.28
        self.hunger = chance.random()
        self.wings = [0.0] * 6
        self.seen = 0

    def look(self, sky):
        near = sky.near(self.x, self.y)
        self.seen = len(near)
        if self.seen > 1:
            self.heading += 0.01 * math.sin(float(near[0]) - self.heading)

    def beat(self, step):
        lift = 0.0
        for _ in range(6):
            for index, wing in enumerate(self.wings):
                wanted = math.sin(step * 0.2 + index * 0.5 + self.hunger)
                wing += 0.1 * (wanted - wing)
                lift += wing * abs(wing) * 0.01
                self.wings[index] = wing
        self.hunger = 0.99 * self.hunger + 0.001 * abs(lift)

    def fly(self):
        self.x = (self.x + math.cos(self.heading) * 0.2) % 100
        self.y = (self.y + math.sin(self.heading) * 0.2) % 100


class Fish:
    def __init__(self, chance):
        self.depth = chance.random()
        self.place = chance.random() * 100


class Pond:
    """Fish that hide, and rings on the water."""

    def __init__(self, chance):
        self.chance = chance
        self.fish = [Fish(chance) for _ in range(300)]
        self.water = np.zeros((160, 160))
        self.before = np.zeros((160, 160))

    def ripple(self):
        for _ in range(3):
            inner = self.water[1:-1, 1:-1]
            around = self.water[:-2, 1:-1] + self.water[2:, 1:-1] + self.water[1:-1, :-2] + self.water[1:-1, 2:]
            fresh = 0.98 * (0.5 * around - self.before[1:-1, 1:-1])
            self.before, self.water = self.water, self.before
            self.water[1:-1, 1:-1] = fresh + 0.001 * inner

    def hide(self, step):
        for fish in self.fish:
            fish.depth += 0.01 * (0.5 + 0.4 * math.sin(step * 0.01 + fish.place) - fish.depth)
            fish.place = (fish.place + self.chance.random() - 0.5) % 100
        x, y = self.chance.randrange(1, 159), self.chance.randrange(1, 159)
        self.water[x, y] += 1


class Sky:
    def __init__(self, chance):
        self.herons = [Heron(i, chance) for i in range(120)]
        self.held = None

    def places(self):
        return [(heron.x, heron.y) for heron in self.herons]

    def refresh(self):
        self.held = np.array(self.places())

    def table(self):
        if SLOW:
            return np.array([[heron.x, heron.y] for heron in self.herons])
        return self.held

    def near(self, x, y):
        table = self.table()
        away = (table[:, 0] - x) ** 2 + (table[:, 1] - y) ** 2
        return np.nonzero(away < 100)[0]


class Ledger:
    """Who was seen when."""

    def __init__(self):
        self.days = {}

    def enter(self, step, herons):
        day = self.days.setdefault(step // 100, {})
        for heron in herons:
            day[heron.number] = max(day.get(heron.number, 0), heron.seen)
        if len(self.days) > 5:
            del self.days[min(self.days)]

    def most(self):
        return max((max(day.values()) for day in self.days.values()), default=0)


def main():
    chance = random.Random(5)
    sky = Sky(chance)
    pond = Pond(chance)
    ledger = Ledger()
    step = 0
    total = 0
    while not COUNT or step < COUNT:
        sky.refresh()
        for heron in sky.herons[step % 6 :: 6]:
            heron.look(sky)
        for heron in sky.herons:
            heron.beat(step)
            heron.fly()
        pond.hide(step)
        pond.ripple()
        ledger.enter(step, sky.herons)
        total += ledger.most()
        step += 1
    print(total, float(pond.water.sum()))


main()
