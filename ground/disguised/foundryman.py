# defect: after each event all open orders are looked through for missed dates, and hardly one is
# kinds: full-scan-each-step
# guilty: Desk.review
# phase: steady
# gain: 38
#
"""foundryman: a discrete-event simulation of a casting plant.

usage: foundryman.py slow|fast [shifts]
"""
import heapq
import math
import random
import sys


class Simulator:
    def __init__(self):
        self.now = 0.0
        self.agenda = []
        self.count = 0
        self.handled = 0
        self.after_event = []

    def at(self, delay, call, *args):
        self.count += 1
        heapq.heappush(self.agenda, (self.now + delay, self.count, call, args))

    def run(self, until):
        agenda = self.agenda
        while agenda and agenda[0][0] <= until:
            when, _, call, args = heapq.heappop(agenda)
            self.now = when
            call(*args)
            self.handled += 1
            for hook in self.after_event:
                hook()
        self.now = until


class Order:
    __slots__ = ("number", "alloy", "weight", "due", "stage", "route", "late", "released", "quality", "place")

    def __init__(self, number, alloy, weight, due, route, now):
        self.number = number
        self.alloy = alloy
        self.weight = weight
        self.due = due
        self.route = route
        self.stage = 0
        self.late = False
        self.released = now
        self.quality = 1.0
        self.place = (0.0, 0.0)


class Monitor:
    """Mean, variance and a coarse histogram, weighted by time."""

    def __init__(self, sim, name):
        self.sim, self.name = sim, name
        self.last, self.value = 0.0, 0.0
        self.area, self.square, self.peak = 0.0, 0.0, 0.0
        self.bins = [0.0] * 20

    def level(self, value):
        dt = self.sim.now - self.last
        self.area += dt * self.value
        self.square += dt * self.value * self.value
        self.bins[min(19, int(self.value))] += dt
        self.peak = max(self.peak, value)
        self.last, self.value = self.sim.now, value


class Station:
    def __init__(self, plant, name, servers, mean, place):
        self.plant, self.name, self.servers, self.mean, self.place = plant, name, servers, mean, place
        self.busy = 0
        self.queue = []
        self.temperature = 700.0
        self.tool = 1.0
        self.load = Monitor(plant.sim, name)

    def accept(self, order):
        order.place = self.place
        heapq.heappush(self.queue, (self.rank(order), order.number, order))
        self.load.level(len(self.queue) + self.busy)
        self.start()

    def rank(self, order):
        slack = order.due - self.plant.sim.now
        rest = len(order.route) - order.stage
        return slack / (rest + 1.0) - 2.0 * order.weight + (5.0 if order.alloy != self.plant.last_alloy else 0.0)

    def start(self):
        while self.queue and self.busy < self.servers:
            _, _, order = heapq.heappop(self.queue)
            self.busy += 1
            self.plant.last_alloy = order.alloy
            self.plant.sim.at(self.service(order), self.finish, order)

    def service(self, order):
        r = self.plant.rng
        base = self.mean * (0.6 + 0.4 * order.weight)
        return base * math.exp(0.2 * r.gauss(0, 1)) / self.tool + 0.1 * abs(self.temperature - 700.0) / 100.0

    def finish(self, order):
        self.busy -= 1
        self.tool = max(0.7, self.tool - 0.0005 * order.weight)
        order.quality *= 1.0 - 0.01 * self.plant.rng.random()
        order.stage += 1
        self.load.level(len(self.queue) + self.busy)
        self.plant.advance(order, self)
        self.start()


class Furnace:
    """A small explicit heat model: layers of the lining."""

    def __init__(self, plant):
        self.plant = plant
        self.layers = [700.0 - 30 * i for i in range(14)]
        self.energy = 0.0

    def tick(self):
        n = len(self.layers)
        for _ in range(6):
            new = self.layers[:]
            for i in range(1, n - 1):
                new[i] += 0.2 * (self.layers[i - 1] - 2 * self.layers[i] + self.layers[i + 1])
            burn = 3.0 if self.layers[0] < 705 else 0.5
            new[0] += burn - 0.02 * (self.layers[0] - self.layers[1])
            new[-1] += 0.05 * (25 - self.layers[-1])
            self.energy += burn
            self.layers = new
        for s in self.plant.stations.values():
            s.temperature += 0.1 * (self.layers[0] - s.temperature)
        self.plant.sim.at(1.0, self.tick)


class Carriers:
    """Automatic trucks; each journey is planned on a grid of aisles."""

    def __init__(self, plant, count):
        self.plant = plant
        self.free = list(range(count))
        self.waiting = []
        self.place = [(0.0, 0.0)] * count
        self.metres = 0.0

    def request(self, order, target):
        self.waiting.append((order, target))
        self.assign()

    def assign(self):
        while self.free and self.waiting:
            order, target = self.waiting.pop(0)
            best, gain = None, None
            for k in self.free:
                d = abs(self.place[k][0] - order.place[0]) + abs(self.place[k][1] - order.place[1])
                if gain is None or d < gain:
                    best, gain = k, d
            self.free.remove(best)
            path = self.plan(order.place, target.place)
            self.metres += gain + len(path)
            self.plant.sim.at((gain + len(path)) / 60.0, self.unload, best, order, target)

    def plan(self, a, b):
        x, y = int(a[0]), int(a[1])
        bx, by = int(b[0]), int(b[1])
        path = []
        while (x, y) != (bx, by):
            options = []
            if x != bx:
                options.append((x + (1 if bx > x else -1), y))
            if y != by:
                options.append((x, y + (1 if by > y else -1)))
            x, y = min(options, key=lambda c: ((c[0] * 7 + c[1] * 13) % 5, c))
            path.append((x, y))
        return path

    def unload(self, k, order, target):
        self.place[k] = target.place
        self.free.append(k)
        self.free.sort()
        target.accept(order)
        self.assign()


class Desk:
    """Knows all open orders and gives notice of those that miss their date."""

    def __init__(self, plant, by_date):
        self.plant, self.by_date = plant, by_date
        self.open = {}
        self.dates = []
        self.notices = 0
        self.trace = 0

    def take(self, order):
        self.open[order.number] = order
        if self.by_date:
            heapq.heappush(self.dates, (order.due, order.number))

    def close(self, order):
        del self.open[order.number]

    def review(self):
        now = self.plant.sim.now
        if self.by_date:
            late = []
            while self.dates and self.dates[0][0] < now:
                number = heapq.heappop(self.dates)[1]
                if number in self.open:
                    late.append(number)
            late.sort()
            for number in late:
                self.tell(self.open[number])
            return
        for order in self.open.values():
            if order.due < now and not order.late:
                self.tell(order)

    def tell(self, order):
        order.late = True
        self.notices += 1
        self.trace = (self.trace * 31 + order.number) % 1000000007


class Plant:
    ROUTES = [("mould", "melt", "pour", "cool", "fettle", "inspect"), ("mould", "core", "melt", "pour", "cool", "grind", "inspect"),
              ("melt", "pour", "cool", "grind", "paint", "inspect")]

    def __init__(self, by_date):
        self.sim = Simulator()
        self.rng = random.Random(4)
        self.last_alloy = 0
        self.desk = Desk(self, by_date)
        self.stations = {}
        for i, (name, servers, mean) in enumerate([("mould", 4, 1.0), ("core", 3, 1.0), ("melt", 5, 1.2), ("pour", 4, 0.8), ("cool", 400, 120.0),
                                                   ("fettle", 3, 1.2), ("grind", 4, 1.2), ("paint", 3, 1.4), ("inspect", 4, 0.7)]):
            self.stations[name] = Station(self, name, servers, mean, (float(i % 3) * 12, float(i // 3) * 9))
        self.furnace = Furnace(self)
        self.carriers = Carriers(self, 12)
        self.done, self.total_flow, self.quality = 0, 0.0, 0.0
        self.number = 0
        self.energy_log = []
        self.sim.after_event.append(self.desk.review)
        self.sim.at(0.0, self.furnace.tick)
        self.sim.at(0.0, self.customer)

    def customer(self):
        self.number += 1
        r = self.rng
        route = self.ROUTES[r.randrange(3)]
        order = Order(self.number, r.randrange(4), 0.5 + r.random(), self.sim.now + 135 + 300 * r.random(), route, self.sim.now)
        self.desk.take(order)
        self.stations[route[0]].accept(order)
        self.sim.at(r.expovariate(1.0 / 0.42), self.customer)

    def advance(self, order, station):
        if order.stage >= len(order.route):
            self.desk.close(order)
            self.done += 1
            self.total_flow += self.sim.now - order.released
            self.quality += order.quality
            return
        self.carriers.request(order, self.stations[order.route[order.stage]])

    def maintain(self):
        for s in self.stations.values():
            s.tool = min(1.0, s.tool + 0.2)

    def balance(self):
        """An end-of-shift forecast: exponential smoothing over the loads."""
        level = 0.0
        for s in self.stations.values():
            for k, b in enumerate(s.load.bins):
                level += 0.01 * k * b / (self.sim.now + 1.0)
        self.energy_log.append(level + self.furnace.energy * 1e-6)


def main():
    plant = Plant(sys.argv[1] == "fast")
    shifts = int(sys.argv[2]) if len(sys.argv) > 2 else 120
    for shift in range(shifts):
        plant.sim.run((shift + 1) * 60.0)
        plant.maintain()
        plant.balance()
    print("%d events, %d done, flow %.9g, quality %.9g, notices %d %d, metres %.9g, forecast %.9g" % (
        plant.sim.handled, plant.done, plant.total_flow / max(1, plant.done), plant.quality, plant.desk.notices, plant.desk.trace,
        plant.carriers.metres, sum(plant.energy_log)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
