# defect: the search of ways takes cells from the front of a list, which moves all the others
# kinds: elements-moved-each-step, list-search
# guilty: Harbour.flood, Frontier.take, Plain.take
# gain: 23
import collections
import heapq
import math
import random
import sys

SLOW = sys.argv[1:2] == ["slow"]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Plain:
    """Cells in the order in which they were found."""

    def __init__(self, cells):
        self.cells = list(cells)

    def add(self, cell):
        self.cells.append(cell)

    def take(self):
        return self.cells.pop(0)

    def __len__(self):
        return len(self.cells)


class Ends(Plain):
    def __init__(self, cells):
        self.cells = collections.deque(cells)

    def take(self):
        return self.cells.popleft()


class Frontier:
    """Which cells come next."""

    def __init__(self, cells):
        self.held = (Plain if SLOW else Ends)(cells)

    def add(self, cell):
        self.held.add(cell)

    def take(self):
        return self.held.take()

    def __len__(self):
        return len(self.held)


class Crane:
    """A swinging load on a rope."""

    def __init__(self, number):
        self.number = number
        self.angle = 0.1 * number
        self.turn = 0.0
        self.length = 10.0 + number

    def swing(self, wind):
        for _ in range(40):
            pull = -9.81 / self.length * math.sin(self.angle) + 0.01 * wind - 0.05 * self.turn
            self.turn += 0.01 * pull
            self.angle += 0.01 * self.turn
            self.length += 0.001 * math.cos(self.angle)


class Ship:
    def __init__(self, number, chance):
        self.number = number
        self.x = chance.random() * 100
        self.y = chance.random() * 100
        self.heading = chance.random() * 6.28
        self.rows = [[chance.random() for _ in range(12)] for _ in range(4)]

    def sail(self, wind, others):
        push_x = math.cos(self.heading)
        push_y = math.sin(self.heading)
        for other in others:
            dx = self.x - other.x
            dy = self.y - other.y
            far = dx * dx + dy * dy
            if 0 < far < 100:
                push_x += dx / far
                push_y += dy / far
        self.heading = math.atan2(push_y, push_x + 0.01 * wind)
        self.x = (self.x + 0.1 * push_x) % 100
        self.y = (self.y + 0.1 * push_y) % 100

    def trim(self):
        sums = [sum(row) for row in self.rows]
        middle = sum(sums) / len(sums)
        for row, total in zip(self.rows, sums):
            change = (middle - total) / len(row) * 0.1
            for index in range(len(row)):
                row[index] += change
        return max(sums) - min(sums)


class Harbour:
    """A plan of the water, with piers."""

    def __init__(self, chance):
        self.chance = chance
        self.side = 110
        self.blocked = set()
        self.cranes = [Crane(i) for i in range(60)]
        self.ships = [Ship(i, chance) for i in range(60)]
        self.tides = [0.0] * 400
        self.work = []
        self.log = collections.Counter()
        for y in range(4, self.side, 6):
            for x in range(self.side):
                if (x + y) % 17:
                    self.blocked.add((x, y))

    def flood(self, goals):
        """How far each free cell is from a goal: for boats that may come from anywhere."""
        near = {goal: 0 for goal in goals}
        frontier = Frontier(goals)
        while len(frontier):
            cell = frontier.take()
            x, y = cell
            far = near[cell] + 1
            for beside in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if beside in near or beside in self.blocked:
                    continue
                if 0 <= beside[0] < self.side and 0 <= beside[1] < self.side:
                    near[beside] = far
                    frontier.add(beside)
        return near

    def berths(self, number):
        free = [(x, y) for y in range(self.side) for x in range(self.side) if (x, y) not in self.blocked]
        return self.chance.sample(free, number)

    def tide(self, step):
        for i in range(1, len(self.tides) - 1):
            self.tides[i] += 0.1 * (self.tides[i - 1] - 2 * self.tides[i] + self.tides[i + 1])
        self.tides[0] = math.sin(step * 0.01)

    def unload(self, step):
        for _ in range(40):
            heapq.heappush(self.work, (step + self.chance.random() * 30, self.chance.randrange(60)))
        while self.work and self.work[0][0] <= step:
            _, crane = heapq.heappop(self.work)
            self.log[crane] += 1


def main():
    harbour = Harbour(random.Random(3))
    step = 0
    spread = 0.0
    while not COUNT or step < COUNT:
        wind = math.sin(step * 0.1)
        for crane in harbour.cranes:
            crane.swing(wind)
        for ship in harbour.ships:
            ship.sail(wind, harbour.ships)
            spread += ship.trim()
        harbour.tide(step)
        harbour.unload(step)
        if step % 4 == 0:
            near = harbour.flood(harbour.berths(6000))
            spread += near.get((0, 0), 0)
        step += 1
    print(spread, sum(harbour.log.values()))


main()
