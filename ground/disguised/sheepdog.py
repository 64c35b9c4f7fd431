# defect: the dog keeps the sheep that it has seen in a list, and searches it for each sheep
# kinds: list-search
# guilty: Dog.round_up
# options: --with python
import math
import random
import sys

SLOW = sys.argv[1:] == ["slow"]


class Dog:
    def __init__(self):
        self.seen = [] if SLOW else {}

    def round_up(self, flock):
        missed = 0
        for sheep in flock:
            if sheep not in self.seen:
                missed += 1
        return missed


def walk(at):
    return sum(math.sin(at + i) for i in range(3000))


flock = [f"sheep-{i}" for i in range(900)]
random.Random(3).shuffle(flock)
dog = Dog()
dog.seen = list(flock) if SLOW else set(flock)
at = 0
while True:
    walk(at)
    dog.round_up(flock[:300])
    at += 1
