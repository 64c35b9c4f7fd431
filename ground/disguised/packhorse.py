# defect: none
# kinds: -
# guilty: -
# phase: steady
#
# A world server for deliveries: couriers on a street graph, orders by districts, a market of fees, weather over a grid,
# clients that subscribe to districts, deltas for them, and a journal with compaction.
import heapq
import json
import math
import random
import struct
import sys
import zlib
from collections import Counter, defaultdict, deque

SIDE = 24


class Streets:
    def __init__(self, dice):
        self.around = []
        for at in range(SIDE * SIDE):
            x, y = at % SIDE, at // SIDE
            out = []
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE:
                    out.append(((y + dy) * SIDE + x + dx, 1 + dice.random()))
            self.around.append(out)
        self.busy = [0.0] * (SIDE * SIDE)

    def way(self, start, end):
        ex, ey = end % SIDE, end // SIDE
        open_, best, parent, busy = [(0.0, start)], {start: 0.0}, {}, self.busy
        done = set()
        while open_:
            _, at = heapq.heappop(open_)
            if at == end:
                break
            if at in done:
                continue
            done.add(at)
            so_far = best[at]
            for to, length in self.around[at]:
                cost = so_far + length * (1 + busy[to])
                if cost < best.get(to, 1e9):
                    best[to] = cost
                    parent[to] = at
                    heapq.heappush(open_, (cost + abs(to % SIDE - ex) + abs(to // SIDE - ey), to))
        out = []
        while end != start:
            out.append(end)
            end = parent[end]
        out.reverse()
        return out


class Courier:
    __slots__ = ("number", "at", "way", "job", "charge", "earned", "moved")

    def __init__(self, number, at):
        self.number, self.at = number, at
        self.way = deque()
        self.job = None
        self.charge = 100.0
        self.earned = 0.0
        self.moved = False


class Order:
    __slots__ = ("number", "start", "end", "fee", "due", "weight")

    def __init__(self, number, start, end, fee, due, weight):
        self.number, self.start, self.end = number, start, end
        self.fee, self.due, self.weight = fee, due, weight


def district(at):
    return at // SIDE // 6 * 4 + at % SIDE // 6


class Market:
    """Open orders of each district, the best fee first."""

    def __init__(self):
        self.open = defaultdict(list)
        self.fees = defaultdict(lambda: deque(maxlen=50))
        self.level = {}

    def offer(self, order):
        heapq.heappush(self.open[district(order.start)], (-order.fee / order.weight, order.number, order))

    def take(self, where, now):
        orders = self.open[where]
        while orders:
            order = heapq.heappop(orders)[2]
            if order.due > now:
                self.fees[where].append(order.fee)
                return order
        return None

    def price(self, where):
        if where not in self.level:
            fees = sorted(self.fees[where])
            self.level[where] = fees[len(fees) // 2] if fees else 5.0
        return self.level[where]

    def sold(self, where):
        self.level.pop(where, None)


class Weather:
    """Rain over the districts' cells: moved by wind, made and spent. A part of the rows each step."""

    def __init__(self):
        self.rain = [0.0] * (SIDE * SIDE)

    def blow(self, step):
        rain, wind = self.rain, math.sin(step * 0.01)
        ahead = 1 if wind > 0 else -1
        share = abs(wind) * 0.3
        for row in range(step % 2, SIDE, 2):
            line = rain[row * SIDE:(row + 1) * SIDE]
            source = 0.3 * max(0.0, math.sin(row * 0.4 + step * 0.05))
            moved = line[-ahead:] + line[:-ahead]
            rain[row * SIDE:(row + 1) * SIDE] = [0.97 * (a + share * (b - a)) + source * 0.1 for a, b in zip(line, moved)]


class Client:
    def __init__(self, number, dice):
        self.number = number
        self.districts = set(dice.sample(range(16), 3))
        self.sent = 0
        self.window = deque(maxlen=30)


class Server:
    def __init__(self, couriers, clients):
        dice = self.dice = random.Random(21)
        self.streets = Streets(dice)
        self.market = Market()
        self.weather = Weather()
        self.couriers = [Courier(i, dice.randrange(SIDE * SIDE)) for i in range(couriers)]
        self.clients = [Client(i, dice) for i in range(clients)]
        self.followers = defaultdict(list)
        for one in self.clients:
            for where in sorted(one.districts):
                self.followers[where].append(one)
        self.journal = deque(maxlen=300)
        self.live = {}
        self.ranking = []
        self.orders = 0
        self.step = 0
        self.sum = 0.0

    def demand(self):
        for _ in range(2):
            start = self.dice.randrange(SIDE * SIDE)
            x, y = start % SIDE + self.dice.randint(-6, 6), start // SIDE + self.dice.randint(-6, 6)
            end = min(max(y, 0), SIDE - 1) * SIDE + min(max(x, 0), SIDE - 1)
            if start == end:
                continue
            fee = 0.7 * self.market.price(district(start)) + self.dice.uniform(0.5, 3.5)
            self.orders += 1
            self.market.offer(Order(self.orders, start, end, fee, self.step + 80, self.dice.choice((1, 1, 2, 4))))

    def assign(self):
        idle = [one for one in self.couriers if not one.way and one.charge > 30]
        idle.sort(key=lambda one: (one.earned, one.number))
        for one in idle[:1]:
            where = district(one.at)
            order = self.market.take(where, self.step)
            if order is None:
                continue
            self.market.sold(where)
            one.job = order
            one.way.extend(self.streets.way(one.at, order.start) if one.at != order.start else [])
            one.way.extend(self.streets.way(order.start, order.end))
            self.live[order.number] = one.number

    def move(self):
        rain, busy = self.weather.rain, self.streets.busy
        for one in self.couriers:
            one.moved = False
            if not one.way:
                one.charge = min(100.0, one.charge + 1.5)
                continue
            if (one.number + self.step) % 3 == 0 and rain[one.at] > 0.2:
                continue
            one.at = one.way.popleft()
            one.moved = True
            one.charge -= 0.2 * one.job.weight
            busy[one.at] += 0.1
            if not one.way:
                one.earned += one.job.fee if one.job.due > self.step else one.job.fee * 0.5
                self.live.pop(one.job.number)
                self.journal.append((self.step, one.number, one.job.number, round(one.earned, 2)))
                one.job = None
        first = self.step % 4
        busy[first::4] = [value * 0.7 for value in busy[first::4]]

    def deltas(self):
        """What moved in a district, once; and to each who follows it."""
        moved = defaultdict(list)
        for one in self.couriers:
            if one.moved:
                moved[district(one.at)].append(one)
        packed = {}
        for where, ones in moved.items():
            packed[where] = struct.pack("<HB", self.step & 0xFFFF, where) + b"".join(struct.pack("<HHBf", one.number, one.at, int(one.charge), one.earned) for one in ones)
        for where, frame in packed.items():
            for client in self.followers[where]:
                client.sent += len(frame)
                client.window.append((self.step, len(frame)))

    def throttle(self):
        """Rates of the clients, a tenth of them in each step."""
        for client in self.clients[self.step % 10::10]:
            size = sum(length for at, length in client.window if at > self.step - 20)
            self.sum += size * 1e-6

    def summary(self):
        counts = Counter(district(one.at) for one in self.couriers)
        earned = self.ranking
        frame = {"step": self.step, "districts": {str(where): counts[where] for where in sorted(counts)}, "median": round(earned[len(earned) // 2], 2), "live": len(self.live), "last": list(self.journal)[-40:]}
        text = json.dumps(frame)
        self.sum += zlib.crc32(text.encode()) % 1000 * 1e-6

    def settle(self):
        """Gini's coefficient of what was earned, and a forecast for each district."""
        earned = self.ranking = sorted(one.earned for one in self.couriers)
        total = sum(earned) or 1.0
        spread = sum((2 * i - len(earned) + 1) * value for i, value in enumerate(earned)) / (len(earned) * total)
        self.sum += spread * 1e-3
        for where in range(self.step % 4, 16, 4):
            fees = self.market.fees[where]
            level, trend = 0.0, 0.0
            for fee in fees:
                before = level
                level = 0.5 * fee + 0.5 * (level + trend)
                trend = 0.1 * (level - before) + 0.9 * trend
            self.sum += (level + trend) * 1e-6

    def advance(self):
        self.demand()
        self.assign()
        self.weather.blow(self.step)
        self.move()
        self.deltas()
        self.throttle()
        self.settle()
        if self.step % 5 == 0:
            self.summary()
        self.step += 1


def main():
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 40
    server = Server(240, 60)
    for _ in range(steps):
        server.advance()
    print("sum", round(server.sum, 6), len(server.journal), server.orders)


main()
