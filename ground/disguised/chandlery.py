# defect: none; orders change all the time, are ordered by their hour in a heap, tried on copies of small states, and packed once each
# kinds: -
# guilty: -
import copy
import heapq
import json
import math
import random
import re
import sys

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 0
LINE = re.compile(r"(\w+)=(-?\d+(?:\.\d+)?)")


class Shelf:
    def __init__(self, chance):
        self.goods = {f"good{i}": chance.randrange(1, 50) for i in range(12)}
        self.worth = chance.random()

    def take(self, good, number):
        have = self.goods[good]
        taken = min(have, number)
        self.goods[good] = have - taken + (10 if taken < number else 0)
        self.worth = 0.99 * self.worth + 0.01 * taken
        return taken


class Order:
    __slots__ = ("hour", "number", "lines", "cost")

    def __init__(self, hour, number, chance):
        self.hour = hour
        self.number = number
        self.lines = [(f"good{chance.randrange(12)}", chance.randrange(1, 9)) for _ in range(6)]
        self.cost = 0.0

    def __lt__(self, other):
        return (self.hour, self.number) < (other.hour, other.number)


class Carts:
    """Ways of carts: two are exchanged if that makes the way shorter."""

    def __init__(self, chance):
        self.chance = chance
        self.places = [(chance.random(), chance.random()) for _ in range(60)]
        self.way = list(range(60))

    def length(self, i):
        (x, y), (u, v) = self.places[self.way[i - 1]], self.places[self.way[i]]
        return math.hypot(x - u, y - v)

    def shorten(self):
        for _ in range(150):
            i, k = self.chance.randrange(1, 59), self.chance.randrange(1, 59)
            before = self.length(i) + self.length(i + 1) + self.length(k) + self.length(k + 1)
            self.way[i], self.way[k] = self.way[k], self.way[i]
            after = self.length(i) + self.length(i + 1) + self.length(k) + self.length(k + 1)
            if after > before + 0.02:
                self.way[i], self.way[k] = self.way[k], self.way[i]
        index = self.chance.randrange(60)
        self.places[index] = (self.chance.random(), self.chance.random())


class Shop:
    def __init__(self):
        self.chance = random.Random(2)
        self.shelves = [Shelf(self.chance) for _ in range(30)]
        self.orders = []
        self.number = 0
        self.hour = 0.0
        self.sums = [0.0] * 64
        self.carts = Carts(self.chance)

    def receive(self):
        for _ in range(50):
            self.number += 1
            heapq.heappush(self.orders, Order(self.hour + self.chance.expovariate(0.2), self.number, self.chance))

    def serve(self):
        while self.orders and self.orders[0].hour <= self.hour:
            order = heapq.heappop(self.orders)
            shelf = self.shelves[order.number % len(self.shelves)]
            for good, number in order.lines:
                order.cost += shelf.take(good, number) * shelf.worth
            self.pack(order)

    def pack(self, order):
        text = json.dumps({"number": order.number, "cost": round(order.cost, 2), "lines": order.lines})
        self.sums[len(text) % 64] += order.cost
        label = f"hour={order.hour:.2f} number={order.number} cost={order.cost:.2f}"
        for name, value in LINE.findall(label):
            self.sums[len(name)] += float(value)

    def guess(self):
        """How a shelf would do in a rush."""
        shelf = copy.copy(self.shelves[self.number % 30])
        shelf.goods = dict(shelf.goods)
        for _ in range(30):
            shelf.take(f"good{self.chance.randrange(12)}", 5)
        return shelf.worth

    def rank(self):
        for shelf in self.shelves:
            shelf.worth += 0.01 * self.chance.random()
        order = sorted(self.shelves, key=lambda shelf: shelf.worth)
        return order[0].worth

    def foresee(self):
        for i in range(1, 64):
            self.sums[i] = 0.5 * (self.sums[i] + math.tanh(self.sums[i - 1] * 0.01)) + 0.1 * math.cos(self.hour + i)

    def step(self):
        self.hour += 1
        self.receive()
        self.serve()
        self.carts.shorten()
        total = self.guess() + self.rank()
        for _ in range(8):
            self.foresee()
        return total


def main():
    shop = Shop()
    step = 0
    total = 0.0
    while not COUNT or step < COUNT:
        total += shop.step()
        step += 1
    print(total)


main()
