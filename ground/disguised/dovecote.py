# defect: the flood takes the next cell from the front of a long list, which moves all others each time
# kinds: elements-moved-each-step, list-search
# guilty: Router.flood
# options: --with python
import collections
import math
import sys

SLOW = sys.argv[1:2] == ["slow"]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Yard:
    def __init__(self, size):
        self.size = size
        self.walls = [[(x * 7 + y * 13) % 11 == 0 for x in range(size)] for y in range(size)]

    def free(self, x, y):
        return 0 <= x < self.size and 0 <= y < self.size and not self.walls[y][x]


class Router:
    def __init__(self, yard):
        self.yard = yard
        # Messages of all birds, in the order in which they came.
        self.pending = [] if SLOW else collections.deque()
        for number in range(120000):
            self.pending.append((number % yard.size, number // 7 % yard.size, 0))

    def flood(self, number):
        sum = 0
        pending = self.pending
        for _ in range(number):
            x, y, hops = pending.pop(0) if SLOW else pending.popleft()
            for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1)):
                if self.yard.free(x + dx, y + dy):
                    sum += 1
            pending.append(((x + 1) % self.yard.size, (y + hops) % self.yard.size, hops + 1))
        return sum


class Dove:
    def __init__(self, number):
        self.x = self.y = 0.0
        self.number = number

    def fly(self, at):
        self.x += 0.01 * math.cos(at * 0.01 + self.number)
        self.y += 0.01 * math.sin(at * 0.01 - self.number)
        return math.hypot(self.x, self.y)


class Weather:
    def __init__(self):
        self.wind = [0.0] * 200

    def blow(self, at):
        for i in range(1, 199):
            self.wind[i] += 0.1 * (self.wind[i - 1] - 2 * self.wind[i] + self.wind[i + 1]) + 1e-3 * math.sin(at + i)


def tend(router, doves, weather):
    at = 0
    while COUNT == 0 or at < COUNT:
        weather.blow(at)
        away = 0.0
        for dove in doves:
            away += dove.fly(at)
        router.flood(60)
        at += 1


tend(Router(Yard(64)), [Dove(number) for number in range(150)], Weather())
