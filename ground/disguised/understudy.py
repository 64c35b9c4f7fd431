# defect: each tick of a choice builds a text of the whole blackboard and the open branch for the debug log, which the level then drops
# kinds: values-through-text
# guilty: Choice.act, tell, outline, render, Journal.note, note
# phase: steady
# gain: 42
#
# Behaviour trees of cleaning robots in a station: blackboards, conditions, ways on a grid, batteries, dirt that spreads,
# a planner of shifts, bookings of lifts, and messages to a console.
import heapq
import json
import logging
import math
import sys
from collections import Counter, OrderedDict, deque

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
LOG = logging.getLogger("robots.trees")

DONE, FAILED, RUNS = range(3)
SIDE = 40


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, number):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % number


class Journal:
    """What the trees say about their ticks."""

    def __init__(self, loud):
        self.loud = loud

    def note(self, board, node, branch):
        if self.loud or LOG.isEnabledFor(logging.DEBUG):
            LOG.debug(tell(board, node, branch))


def tell(board, node, branch):
    return f"tick {node.name} below {outline(branch)} with {render(board)}"


def outline(branch):
    return "/".join(one.name for one in branch)


def render(board):
    return ", ".join(f"{key}={value}" for key, value in sorted(board.items()) if key != "way")


class Node:
    def __init__(self, name, *children):
        self.name = name
        self.children = children

    def tick(self, robot, branch):
        branch.append(self)
        out = self.act(robot, branch)
        branch.pop()
        return out


class Sequence(Node):
    def act(self, robot, branch):
        for one in self.children:
            out = one.tick(robot, branch)
            if out != DONE:
                return out
        return DONE


class Choice(Node):
    def act(self, robot, branch):
        robot.journal.note(robot.board, self, branch)
        for one in self.children:
            out = one.tick(robot, branch)
            if out != FAILED:
                return out
        return FAILED


class Test(Node):
    def __init__(self, name, key, least):
        super().__init__(name)
        self.key, self.least = key, least

    def act(self, robot, branch):
        return DONE if robot.board[self.key] >= self.least else FAILED


class Charge(Node):
    def act(self, robot, branch):
        if robot.place != robot.home:
            return robot.go(robot.home)
        robot.board["charge"] = min(100.0, robot.board["charge"] + 5)
        return RUNS if robot.board["charge"] < 95 else DONE


class Clean(Node):
    def act(self, robot, branch):
        dirt = robot.world.dirt
        here = robot.place
        if dirt[here] > 1:
            robot.board["bin"] += dirt[here] * 0.2
            dirt[here] = 0.0
            robot.board["cleaned"] += 1
            return DONE
        return FAILED


class Seek(Node):
    def act(self, robot, branch):
        if not robot.board["way"]:
            target = robot.world.dirtiest(robot)
            if target is None:
                return FAILED
            robot.board["target"] = target
        return robot.go(robot.board["target"])


class Empty(Node):
    def act(self, robot, branch):
        if robot.place != robot.home:
            return robot.go(robot.home)
        robot.board["bin"] = 0.0
        return DONE


class Wait(Node):
    def act(self, robot, branch):
        robot.board["waited"] += 1
        return RUNS


def make_tree():
    return Choice("root",
                  Sequence("power", Test("low", "need", 1), Charge("charge")),
                  Sequence("bin", Test("full", "bin", 60), Empty("empty")),
                  Sequence("work", Test("shift", "shift", 1), Choice("clean", Clean("here"), Seek("seek"))),
                  Wait("wait"))


class Robot:
    def __init__(self, world, number, journal):
        self.world, self.number, self.journal = world, number, journal
        self.home = self.place = world.random.below(SIDE) * SIDE + 1
        self.board = {"charge": 60.0 + number % 40, "need": 0, "bin": 0.0, "shift": 1, "way": deque(), "target": 0, "waited": 0, "cleaned": 0, "zone": number % 4, "speed": 1.0}
        self.tree = make_tree()
        self.volts = deque(maxlen=20)

    def go(self, target):
        way = self.board["way"]
        if not way or way[-1] != target:
            way.clear()
            way.extend(self.world.path(self.place, target))
            if not way:
                return FAILED
        self.place = way.popleft()
        self.board["charge"] -= 0.35
        return RUNS if way else DONE

    def power(self):
        charge = self.board["charge"]
        self.volts.append(22 + 3 * charge / 100 - 0.2 * math.exp(-charge / 10))
        if charge < 25:
            self.board["need"] = 1
        elif charge > 90:
            self.board["need"] = 0


class World:
    def __init__(self, loud, robots):
        self.random = Random(7)
        self.walls = bytearray(SIDE * SIDE)
        for i in range(SIDE):
            for at in (i, (SIDE - 1) * SIDE + i, i * SIDE, i * SIDE + SIDE - 1):
                self.walls[at] = 1
            if i % 10 not in (4, 5):
                for row in (10, 20, 30):
                    self.walls[row * SIDE + i] = 1
        self.dirt = [0.0] * (SIDE * SIDE)
        journal = Journal(loud)
        self.robots = [Robot(self, i, journal) for i in range(robots)]
        for robot in self.robots:
            while self.walls[robot.home]:
                robot.home += 1
            robot.place = robot.home
        self.paths = OrderedDict()
        self.bookings = []
        self.console = deque(maxlen=500)
        self.step = 0
        self.sum = 0.0

    def soil(self):
        for _ in range(60):
            at = self.random.below(SIDE * SIDE)
            if not self.walls[at]:
                self.dirt[at] += 2.0
        first = 1 + self.step * 8 % (SIDE - 2)
        dirt = self.dirt
        for at in range(first * SIDE + 1, min(first + 8, SIDE - 1) * SIDE - 1):
            if not self.walls[at]:
                dirt[at] = 0.96 * dirt[at] + 0.01 * (dirt[at - 1] + dirt[at + 1] + dirt[at - SIDE] + dirt[at + SIDE])

    def dirtiest(self, robot):
        zone, best, target = robot.board["zone"], 1.0, None
        x, y = robot.place % SIDE, robot.place // SIDE
        for dy in range(-4, 5):
            for dx in range(-4, 5):
                if 0 < x + dx < SIDE and 0 < y + dy < SIDE:
                    at = (y + dy) * SIDE + x + dx
                    value = self.dirt[at] - 0.1 * (abs(dx) + abs(dy))
                    if value > best and not self.walls[at]:
                        best, target = value, at
        if target is None:
            target = (4 + 9 * zone + self.random.below(5)) * SIDE + 4 + self.random.below(30)
            if self.walls[target] or target == robot.place:
                return None
        return target

    def path(self, start, end):
        key = (start, end)
        known = self.paths.get(key)
        if known is not None:
            self.paths.move_to_end(key)
            return known
        tx, ty = end % SIDE, end // SIDE
        open_, costs, parents = [(0, start)], {start: 0}, {}
        while open_:
            _, at = heapq.heappop(open_)
            if at == end:
                break
            cost = costs[at] + 1
            for to in (at + 1, at - 1, at + SIDE, at - SIDE):
                if not self.walls[to] and cost < costs.get(to, 1 << 30):
                    costs[to] = cost
                    parents[to] = at
                    heapq.heappush(open_, (cost + abs(to % SIDE - tx) + abs(to // SIDE - ty), to))
        way = []
        while end != start and end in parents:
            way.append(end)
            end = parents[end]
        way.reverse()
        self.paths[key] = way
        if len(self.paths) > 3000:
            self.paths.popitem(last=False)
        return way

    def lifts(self):
        """Bookings of lifts, earliest first."""
        for robot in self.robots:
            if (robot.number + self.step) % 2 == 0:
                heapq.heappush(self.bookings, (self.step + self.random.below(50), robot.number, robot.place))
        while self.bookings and self.bookings[0][0] <= self.step:
            _, number, place = heapq.heappop(self.bookings)
            self.sum += (number + place) * 1e-6

    def shifts(self):
        order = sorted(self.robots, key=lambda one: (one.board["cleaned"] - one.board["waited"], one.number))
        for i, robot in enumerate(order):
            robot.board["shift"] = 1 if i < len(order) * 0.9 else 0

    def report(self):
        counts = Counter(robot.board["zone"] for robot in self.robots)
        frame = {"step": self.step, "zones": dict(counts), "robots": [[one.number, one.place, round(one.board["charge"], 1), round(one.volts[-1], 2)] for one in self.robots]}
        self.console.append(json.dumps(frame))
        self.sum += len(self.console[-1]) * 1e-3

    def advance(self):
        self.soil()
        for robot in self.robots:
            robot.tree.tick(robot, [])
            robot.power()
        self.lifts()
        self.shifts()
        self.report()
        self.step += 1


def main():
    loud = len(sys.argv) > 1 and sys.argv[1] == "slow"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 40
    world = World(loud, 60)
    for _ in range(steps):
        world.advance()
    print("sum", round(world.sum, 6), sum(one.place for one in world.robots), round(sum(world.dirt), 6))


main()
