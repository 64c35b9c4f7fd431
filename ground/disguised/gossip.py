# defect: the text of each debug message is put together by an f-string before the logger drops it, as its level is off
# kinds: values-through-text, allocations-each-step
# guilty: Village.tell, Village.step, Person.__repr__, Person.__str__
import logging
import math
import sys
import time

logging.basicConfig(level=logging.WARNING)
log = logging.getLogger("village")


class Person:
    def __init__(self, number):
        self.number, self.x, self.y = number, math.cos(number), math.sin(number)
        self.mood, self.heard = 0.5, 0

    def __repr__(self):
        return f"Person({self.number}, at={self.x:.3f}/{self.y:.3f}, mood={self.mood:.2f}, heard={self.heard})"


class Village:
    def __init__(self, number, is_lazy):
        self.people = [Person(one) for one in range(number)]
        self.is_lazy = is_lazy

    def tell(self, one, other, distance):
        if self.is_lazy:
            log.debug("%s tells %s (%.3f away)", one, other, distance)
        else:
            log.debug(f"{one} tells {other} ({distance:.3f} away)")
        other.heard += 1
        other.mood = 0.9 * other.mood + 0.1 * one.mood

    def walk(self, one, now):
        turn = 0.0
        for k in range(12):
            turn += math.sin(now + one.number * k) * 0.1
        one.x += 0.01 * math.cos(turn)
        one.y += 0.01 * math.sin(turn)

    def step(self, now):
        number = len(self.people)
        for place, one in enumerate(self.people):
            self.walk(one, now)
            other = self.people[(place * 7 + 3) % number]
            self.tell(one, other, math.hypot(one.x - other.x, one.y - other.y))


def main():
    village = Village(400, sys.argv[1] != "slow")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    step = 0
    begin = time.monotonic()
    while step != steps:
        village.step(step * 0.01)
        step += 1
        if steps < 0:
            time.sleep(max(0.0, begin + step * 0.02 - time.monotonic()))
    print(village.people[0].mood)


main()
