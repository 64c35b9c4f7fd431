# defect: the planner copies the whole house deeply to try an action, though an action changes one bed
# kinds: copies-each-step, allocations-each-step
# guilty: Gardener.value, Gardener.choose, House.imagine
# gain: 44
import copy
import math
import random
import sys

SLOW = sys.argv[1:2] == ["slow"]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Plant:
    def __init__(self, chance):
        self.height = chance.random()
        self.leaves = chance.randrange(5, 20)
        self.thirst = 0.2

    def grow(self, light, water, warm):
        drive = light * math.exp(-((warm - 22) ** 2) / 80) * (1 - math.exp(-3 * water))
        self.height += 0.001 * drive * (1 - self.height / 3)
        self.thirst += 0.01 * (0.4 * drive - water * 0.1)
        if self.height * 20 > self.leaves:
            self.leaves += 1


class Bed:
    def __init__(self, chance):
        self.plants = [Plant(chance) for _ in range(4)]
        self.water = 0.5
        self.warm = 20.0
        self.history = [0.0] * 12

    def health(self):
        total = 0.0
        for plant in self.plants:
            total += plant.height * plant.leaves - 4 * abs(plant.thirst - 0.3)
        return total + self.water * 0.1 - 0.001 * abs(self.warm - 22)

    def live(self, light):
        for plant in self.plants:
            plant.grow(light, self.water, self.warm)
        self.water *= 0.999
        self.warm += 0.01 * (18 + 8 * light - self.warm)
        self.history.pop()
        self.history.insert(0, self.water)


class House:
    def __init__(self, chance):
        self.beds = [Bed(chance) for _ in range(16)]
        self.hour = 0

    def live(self):
        self.hour += 1
        light = max(0.0, math.sin(self.hour * 0.26))
        for bed in self.beds:
            bed.live(light)

    def health(self):
        return sum(bed.health() for bed in self.beds)


class Action:
    def __init__(self, bed, amount):
        self.bed = bed
        self.amount = amount

    def apply(self, house):
        bed = house.beds[self.bed]
        bed.water = min(1.0, bed.water + self.amount)
        for plant in bed.plants:
            plant.thirst -= self.amount * 0.2

    def __repr__(self):
        return f"{self.amount} for {self.bed}"


class Air:
    """Warm air that rises and moves: cells of a grid."""

    def __init__(self):
        self.cells = [[20.0 + (x + y) % 3 for x in range(30)] for y in range(20)]

    def move(self):
        fresh = []
        for y, row in enumerate(self.cells):
            above = self.cells[y - 1] if y else row
            fresh.append([0.8 * value + 0.15 * above[x] + 0.05 * row[x - 1] for x, value in enumerate(row)])
        self.cells = fresh

    def mean(self):
        return sum(map(sum, self.cells)) / 600


class Gauge:
    """Readings with noise, and a filter of them."""

    def __init__(self, chance):
        self.chance = chance
        self.means = [0.0] * 16
        self.spreads = [1.0] * 16

    def read(self, house):
        for index, bed in enumerate(house.beds):
            for _ in range(8):
                seen = bed.water + self.chance.gauss(0, 0.1)
                gain = self.spreads[index] / (self.spreads[index] + 0.01)
                self.means[index] += gain * (seen - self.means[index])
                self.spreads[index] = (1 - gain) * self.spreads[index] + 0.0001


class Gardener:
    def __init__(self, chance):
        self.chance = chance
        self.done = []

    def value(self, house, action):
        """How well the house is after an action."""
        if SLOW:
            other = copy.deepcopy(house)
            action.apply(other)
            return other.health()
        bed = house.beds[action.bed]
        before = bed.water, [plant.thirst for plant in bed.plants]
        action.apply(house)
        health = house.health()
        bed.water, thirsts = before
        for plant, thirst in zip(bed.plants, thirsts):
            plant.thirst = thirst
        return health

    def choose(self, house):
        actions = [Action(self.chance.randrange(len(house.beds)), 0.1 * self.chance.random()) for _ in range(3)]
        best = max(actions, key=lambda action: self.value(house, action))
        best.apply(house)
        self.done.append(best.bed)
        if len(self.done) > 200:
            self.done = self.done[100:]


def main():
    chance = random.Random(1)
    house = House(chance)
    air = Air()
    gauge = Gauge(chance)
    gardener = Gardener(chance)
    step = 0
    warm = 0.0
    while not COUNT or step < COUNT:
        for _ in range(12):
            house.live()
            air.move()
            gauge.read(house)
        gardener.choose(house)
        warm += air.mean()
        step += 1
    print(house.health(), warm, sum(gauge.means))


main()
