# defect: for each particle and each beacon, the covariance of the sensor and the beacon's pose in the map are made and inverted again, though they depend on neither the particle nor the step's readings
# kinds: same-work-again
# guilty: Glass.weigh, shape, upend, settled, product, turned, Glass.gauge
# phase: steady
# gain: 39
#
# A dredger finds its place between beacons: particles, wheel and current models, tide tables, echo soundings into a grid, a
# pump and its heat, dispatch of barges, and a log with checksums.
import bisect
import heapq
import json
import math
import random
import sys
import zlib
from collections import defaultdict, deque


def product(a, b):
    (p, q), (r, s) = a
    (t, u), (v, w) = b
    return [[p * t + q * v, p * u + q * w], [r * t + s * v, r * u + s * w]]


def turned(angle):
    c, s = math.cos(angle), math.sin(angle)
    return [[c, -s], [s, c]]


def transposed(a):
    (p, q), (r, s) = a
    return [[p, r], [q, s]]


def upend(m):
    (a, b), (c, d) = m
    det = a * d - b * c
    return [[d / det, -b / det], [-c / det, a / det]]


def shape(beacon):
    """Covariance of a sight, in the map."""
    turn = turned(beacon["angle"])
    return product(product(turn, [[beacon["far"], 0.0], [0.0, beacon["wide"]]]), transposed(turn))


def settled(beacon, chain):
    """Where a beacon stands, through its pontoons."""
    x, y = beacon["at"]
    for dx, dy, angle in chain:
        c, s = math.cos(angle), math.sin(angle)
        x, y = c * x - s * y + dx, s * x + c * y + dy
    return x, y


class Glass:
    """Weighs particles by sights of beacons."""

    def __init__(self, beacons, chains, afresh):
        self.beacons, self.chains, self.afresh = beacons, chains, afresh
        self.kept = None if afresh else [self.gauge(i) for i in range(len(beacons))]

    def gauge(self, i):
        return settled(self.beacons[i], self.chains[i]), upend(shape(self.beacons[i]))

    def weigh(self, particle, sights):
        x, y, _, _ = particle
        total = 0.0
        for i, (sx, sy) in sights:
            (bx, by), ((a, b), (c, d)) = self.gauge(i) if self.afresh else self.kept[i]
            ex, ey = bx - x - sx, by - y - sy
            total += ex * (a * ex + b * ey) + ey * (c * ex + d * ey)
        return math.exp(-0.5 * min(total, 600.0))


class Filter:
    def __init__(self, glass, number, dice):
        self.glass, self.dice = glass, dice
        self.particles = [(dice.uniform(-5, 5), dice.uniform(-5, 5), dice.uniform(-3, 3), 1.0) for _ in range(number)]

    def advance(self, speed, spin, current, depths):
        gauss, out = self.dice.gauss, []
        cx, cy = current
        for x, y, turn, weight in self.particles:
            turn += spin + gauss(0, 0.02)
            go = speed + gauss(0, 0.05)
            drag = depths.get((int(x) >> 2, int(y) >> 2), 3.0)
            go *= 1 - 0.02 / drag
            out.append((x + go * math.cos(turn) + cx, y + go * math.sin(turn) + cy, turn, weight))
        self.particles = out

    def correct(self, sights):
        weigh = self.glass.weigh
        weights = [weigh(one, sights) + 1e-300 for one in self.particles]
        total = sum(weights)
        self.particles = [(x, y, turn, weight / total) for (x, y, turn, _), weight in zip(self.particles, weights)]

    def draw(self):
        sums, so_far = [], 0.0
        for one in self.particles:
            so_far += one[3]
            sums.append(so_far)
        number = len(sums)
        start = self.dice.random() / number
        out = []
        for i in range(number):
            at = min(bisect.bisect_left(sums, (start + i / number) * so_far), number - 1)
            x, y, turn, _ = self.particles[at]
            out.append((x, y, turn, 1.0 / number))
        self.particles = out

    def place(self):
        weights = sum(one[3] for one in self.particles)
        x = sum(one[0] * one[3] for one in self.particles) / weights
        y = sum(one[1] * one[3] for one in self.particles) / weights
        s = sum(math.sin(one[2]) * one[3] for one in self.particles)
        c = sum(math.cos(one[2]) * one[3] for one in self.particles)
        return x, y, math.atan2(s, c)


class Tide:
    """Heights by harmonics, tabulated an hour ahead."""

    PARTS = [(1.2, 0.5059, 0.3), (0.4, 0.5236, 1.1), (0.3, 0.2625, 2.0), (0.2, 0.2434, 0.7), (0.1, 1.0119, 1.9)]

    def __init__(self):
        self.table = deque()

    def height(self, hours):
        return sum(a * math.cos(w * hours + p) for a, w, p in self.PARTS)

    def at(self, minute):
        if not self.table or minute >= self.table[-1][0]:
            self.table.clear()
            self.table.extend((minute + k, self.height((minute + k) / 60)) for k in range(61))
        while self.table[1][0] <= minute:
            self.table.popleft()
        return self.table[0][1]


class Dredger:
    def __init__(self, afresh):
        dice = self.dice = random.Random(4)
        self.beacons = [{"at": (60 * math.cos(k), 60 * math.sin(k)), "angle": k * 0.7, "far": 2.0 + k * 0.1, "wide": 0.6} for k in range(12)]
        self.chains = [[(0.1 * k, 0.2, 0.01)] for k in range(12)]
        self.filter = Filter(Glass(self.beacons, self.chains, afresh), 300, dice)
        self.truth = [settled(one, chain) for one, chain in zip(self.beacons, self.chains)]
        self.x = self.y = self.turn = 0.0
        self.tide = Tide()
        self.bottom = {}
        self.soundings = defaultdict(list)
        self.pump = [20.0] * 160
        self.barges = []
        self.log = deque(maxlen=400)
        self.step = 0
        self.sum = 0.0
        for k in range(30):
            heapq.heappush(self.barges, (k * 3.0, k, 0.0))

    def drive(self):
        spin = 0.05 + 0.03 * math.sin(self.step * 0.01)
        self.turn += spin
        self.x += 0.5 * math.cos(self.turn)
        self.y += 0.5 * math.sin(self.turn)
        return 0.5, spin

    def sights(self):
        seen = [(k + self.step) % 12 for k in range(2)]
        return [(k, (self.truth[k][0] - self.x + self.dice.gauss(0, 0.7), self.truth[k][1] - self.y + self.dice.gauss(0, 0.7))) for k in seen]

    def sound(self):
        """Echoes of a fan below the ship: a median for each cell."""
        height = self.tide.at(self.step // 60)
        for k in range(-40, 41):
            px, py = self.x - k * 0.2 * math.sin(self.turn), self.y + k * 0.2 * math.cos(self.turn)
            depth = 6 + math.sin(px * 0.2) * math.cos(py * 0.3) + height + self.dice.random() * 0.1
            cell = (int(px) >> 2, int(py) >> 2)
            bisect.insort(self.soundings[cell], depth - height)
            if len(self.soundings[cell]) > 41:
                kept = self.soundings[cell]
                del kept[0 if self.step & 1 else -1]
        for cell, depths in self.soundings.items():
            self.bottom[cell] = depths[len(depths) // 2]

    def warm(self):
        """Heat along the pump's shaft."""
        for _ in range(4):
            t = self.pump
            t[0] += 0.4 * math.sin(self.step * 0.02) + 0.5
            self.pump = [t[0]] + [b + 0.2 * (a - 2 * b + c) - 0.002 * (b - 15) for a, b, c in zip(t, t[1:], t[2:])] + [t[-1] * 0.98 + 0.3]

    def dispatch(self):
        for _ in range(25):
            due, number, load = heapq.heappop(self.barges)
            load = min(100.0, load + 5 * self.dice.random())
            wait = 20.0 if load >= 99 else 1 + (number * 7 + self.step) % 5
            heapq.heappush(self.barges, (due + wait, number, 0.0 if load >= 99 else load))

    def dredge(self):
        """Where the bottom is highest, around the ship."""
        cx, cy = int(self.x) >> 2, int(self.y) >> 2
        near = [(self.bottom.get((cx + dx, cy + dy), 9.0), dx, dy) for dx in range(-12, 13) for dy in range(-12, 13)]
        near.sort()
        self.sum += near[0][0] * 1e-3

    def note(self, place):
        frame = {"step": self.step, "place": [round(one, 3) for one in place], "barges": [[one[1], round(one[0], 1)] for one in sorted(self.barges)], "pump": [round(one, 2) for one in self.pump[::2]]}
        text = json.dumps(frame)
        self.log.append(text)
        self.sum += zlib.crc32(text.encode()) % 1000 * 1e-6

    def advance(self):
        speed, spin = self.drive()
        self.filter.advance(speed, spin, (0.01, 0.0), self.bottom)
        self.filter.correct(self.sights())
        place = self.filter.place()
        self.filter.draw()
        self.sound()
        self.warm()
        self.dispatch()
        self.dredge()
        self.note(place)
        self.step += 1
        self.sum += math.hypot(place[0] - self.x, place[1] - self.y)


def main():
    afresh = len(sys.argv) > 1 and sys.argv[1] == "slow"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 40
    ship = Dredger(afresh)
    for _ in range(steps):
        ship.advance()
    print("sum", round(ship.sum, 6), len(ship.bottom))


main()
