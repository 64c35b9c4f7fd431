# defect: a machine parses and checks the text of its part program again at each start of a part, although the shop makes only six kinds of parts
# kinds: same-work-again, parsed-each-step, text-parsed-each-step, values-through-text
# guilty: parse_program, Machine.load
# gain: 55
#
# A machine shop in real time: milling machines that run G-code, carts, a tool store, wear, temperatures, energy.
import math
import random
import re
import sys
import time
from heapq import heappop, heappush

WORD = re.compile(r"([GXYZFSTM])(-?\d+(?:\.\d+)?)")


def write_program(kind):
    """The text of a part program, as a CAM system would write it."""
    rnd = random.Random(kind)
    lines = [f"(part {kind})", "G21", "G90", f"T{kind % 4 + 1} M6", f"S{4000 + 500 * kind} M3"]
    x = y = 0.0
    for layer in range(5):
        lines.append(f"G0 X0.000 Y0.000 Z{5 - layer:.3f}")
        lines.append(f"G1 Z{-0.5 * layer - 0.5:.3f} F300")
        for k in range(14 + kind):
            angle = 0.3 * k * (1 + 0.02 * kind)
            x = (10 + 3 * k) * math.cos(angle) + rnd.random()
            y = (10 + 3 * k) * math.sin(angle) + rnd.random()
            lines.append(f"G1 X{x:.3f} Y{y:.3f} F{600 + 40 * (k % 7)}")
    lines += ["G0 Z50.000", "M5", "M30"]
    return "\n".join(lines)


def parse_program(text):
    """Moves of a part program: (seconds, length, feed, end point), and the tool."""
    moves, tool, feed = [], 1, 300.0
    at = [0.0, 0.0, 50.0]
    for number, line in enumerate(text.splitlines()):
        if line.startswith("("):
            continue
        words = WORD.findall(line)
        if not words:
            raise ValueError(f"line {number}: {line!r}")
        target, rapid = list(at), False
        for letter, value in words:
            v = float(value)
            if letter == "X":
                target[0] = v
            elif letter == "Y":
                target[1] = v
            elif letter == "Z":
                target[2] = v
            elif letter == "F":
                feed = v
            elif letter == "T":
                tool = int(v)
            elif letter == "G":
                rapid = v == 0
        if target != at:
            length = math.dist(at, target)
            speed = 9000.0 if rapid else feed
            if max(abs(c) for c in target) > 400:
                raise ValueError(f"line {number}: out of the machine")
            moves.append((60.0 * length / speed, length, 0.0 if rapid else speed, tuple(target)))
            at = target
    return moves, tool


class Machine:
    def __init__(self, ident, shop):
        self.ident = ident
        self.shop = shop
        self.moves = []
        self.index = 0
        self.left = 0.0
        self.tool = 0
        self.temperature = 21.0
        self.wear = [0.0] * 6
        self.position = (0.0, 0.0, 50.0)
        self.parts = 0
        self.vibration = [0.0] * 8

    def load(self, kind):
        text = self.shop.programs[kind]
        if self.shop.keep_parsed:
            if kind not in self.shop.parsed:
                self.shop.parsed[kind] = parse_program(text)
            self.moves, self.tool = self.shop.parsed[kind]
        else:
            self.moves, self.tool = parse_program(text)
        self.index = 0
        self.left = self.moves[0][0]

    def advance(self, dt):
        """Runs for some seconds; True if the part was finished."""
        while dt > 0 and self.index < len(self.moves):
            if self.left > dt:
                self.left -= dt
                break
            dt -= self.left
            _, length, feed, self.position = self.moves[self.index]
            if feed:
                self.wear[self.tool] += length * (1 + self.temperature / 100) * 1e-6
                self.temperature += 2e-5 * length
            self.index += 1
            if self.index < len(self.moves):
                self.left = self.moves[self.index][0]
        return self.index >= len(self.moves)

    def spindle(self, t):
        """A chatter estimate: the energy of a few harmonics, smoothed."""
        base = 0.7 + 0.1 * self.ident
        vib = self.vibration
        for k in range(8):
            s = math.sin(base * (k + 1) * t) * (1 + self.wear[self.tool])
            vib[k] += 0.1 * (s * s - vib[k])
        self.temperature += (21.0 - self.temperature) * 0.0005
        return sum(vib)


class Cart:
    __slots__ = ("x", "y", "goal", "carried")

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.goal = (x, y)
        self.carried = 0


class Shop:
    def __init__(self, machines, keep_parsed):
        self.keep_parsed = keep_parsed
        self.rnd = random.Random(99)
        self.programs = [write_program(k) for k in range(6)]
        self.parsed = {}
        self.machines = [Machine(i, self) for i in range(machines)]
        self.carts = [Cart(3.0 * i, 0.0) for i in range(20)]
        self.orders = []
        self.next_order = 0
        self.energy = 0.0
        for _ in range(200):
            self.order(0)
        for m in self.machines:
            m.load(self.take())

    def order(self, t):
        due = t + 60 + self.rnd.randrange(600)
        heappush(self.orders, (due, self.next_order, self.rnd.randrange(6)))
        self.next_order += 1

    def take(self):
        return heappop(self.orders)[2]

    def run_machines(self, t, dt):
        done = 0
        for m in self.machines:
            self.energy += 0.001 * m.spindle(t)
            if m.advance(dt):
                m.parts += 1
                done += 1
                self.order(t)
                m.load(self.take())
        return done

    def run_carts(self, dt):
        carts = self.carts
        for i, c in enumerate(carts):
            dx, dy = c.goal[0] - c.x, c.goal[1] - c.y
            d = math.hypot(dx, dy)
            if d < 0.5:
                c.carried += 1
                c.goal = (float(self.rnd.randrange(60)), float(self.rnd.randrange(30)))
                continue
            push_x, push_y = dx / d, dy / d
            for other in carts:
                ox, oy = c.x - other.x, c.y - other.y
                r2 = ox * ox + oy * oy
                if 0 < r2 < 9.0:
                    push_x += 0.4 * ox / r2
                    push_y += 0.4 * oy / r2
            c.x += push_x * dt * 0.8
            c.y += push_y * dt * 0.8

    def plan(self, t):
        """Looks through the next orders and estimates the lateness with a list schedule."""
        free = [m.left for m in self.machines]
        late = 0.0
        for due, _, kind in sorted(self.orders)[:60]:
            first = min(free)
            free[free.index(first)] = first + 40 + 5 * kind
            late += max(0.0, t + first - due)
        return late


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: cellmill.py slow|fast [ticks]")
    shop = Shop(24, sys.argv[1] == "fast")
    ticks = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    tick, late, parts, t = 0, 0.0, 0, 0.0
    due = time.monotonic()
    while not ticks or tick < ticks:
        parts += shop.run_machines(t, 10.0)      # the clock of the shop runs ahead of ours
        for _ in range(4):
            shop.run_carts(0.25)
        late += shop.plan(t)
        t += 10.0
        tick += 1
        due = max(due + 0.004, time.monotonic() - 0.1)
        time.sleep(max(0.0, due - time.monotonic()))
    carried = sum(c.carried for c in shop.carts)
    worn = sum(sum(m.wear) for m in shop.machines)
    print(f"{parts} {carried} {late:.4f} {worn:.9f} {shop.energy:.6f}")


if __name__ == "__main__":
    main()
