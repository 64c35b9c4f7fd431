# defect: nearly all look-ups in the table of nests fail and are answered by an exception, which costs more than the look-up
# kinds: exceptions-each-step
# guilty: Forest.nest_at, Forest.rest, Magpie.fly
import math
import sys
import time

SLOW = len(sys.argv) > 1 and sys.argv[1] == "slow"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class NoNest(Exception):
    pass


class Forest:
    def __init__(self, number):
        self.nests = {(i * 7 % 100, i * 13 % 100): i for i in range(number)}

    def nest_at(self, place):
        if place not in self.nests:
            raise NoNest(f"there is no nest at {place}")
        return self.nests[place]

    def rest(self, place):
        try:
            return self.nest_at(place)
        except NoNest:
            return None

    def nest_or_none(self, place):
        return self.nests.get(place)


class Magpie:
    def __init__(self, number):
        self.x = number * 3 % 100
        self.y = number * 5 % 100
        self.angle = number * 0.1
        self.rests = 0

    def fly(self, forest, dt):
        self.angle += 0.1 * math.sin(self.x * 0.1 + self.y * 0.2)
        self.x = (self.x + math.cos(self.angle) * dt * 20) % 100
        self.y = (self.y + math.sin(self.angle) * dt * 20) % 100
        place = (int(self.x), int(self.y))
        nest = forest.rest(place) if SLOW else forest.nest_or_none(place)
        if nest is not None:
            self.rests += 1


def main():
    forest = Forest(150)
    magpies = [Magpie(i) for i in range(600)]
    step = 0
    while step != STEPS:
        for magpie in magpies:
            magpie.fly(forest, 0.01)
        step += 1
        if STEPS < 0:
            time.sleep(0.002)
    print(sum(one.rests for one in magpies))


main()
