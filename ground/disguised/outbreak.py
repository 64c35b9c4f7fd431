# defect: contact tracing walks the whole log of meetings of the last days, a list, for each person who tests positive
# kinds: full-scan-each-step, list-search, same-data-each-call, superlinear-lookup
# guilty: ContactTracer.contacts_of, Town.trace
# gain: 49
#
# An agent-based epidemic in a town: households, workplaces, shops, tests, tracing and quarantine.
import bisect
import math
import random
import sys
from collections import defaultdict, deque

SUSCEPTIBLE, EXPOSED, INFECTIOUS, RECOVERED = range(4)


class Person:
    __slots__ = ("ident", "age", "home", "work", "state", "until", "quarantine", "load", "seen")

    def __init__(self, ident, age, home, work):
        self.ident = ident
        self.age = age
        self.home = home
        self.work = work
        self.state = SUSCEPTIBLE
        self.until = 0
        self.quarantine = 0
        self.load = 0.0
        self.seen = 0


class ContactTracer:
    """The log that the phones of the town keep: pairs of people who met."""

    DAYS = 6

    def __init__(self, indexed):
        self.indexed = indexed
        self.meetings = deque()                      # of (day, a, b)
        self.days = deque()                          # of (day, contacts of each person)

    def record(self, day, pairs):
        if not self.indexed:
            self.meetings.extend([(day, a, b) for a, b in pairs])
            return
        if not self.days or self.days[-1][0] != day:
            self.days.append((day, defaultdict(list)))
        met = self.days[-1][1]
        for a, b in pairs:
            met[a].append(b)
            met[b].append(a)

    def expire(self, day):
        log = self.days if self.indexed else self.meetings
        while log and log[0][0] < day - self.DAYS:
            log.popleft()

    def contacts_of(self, ident):
        found = set()
        if self.indexed:
            for _, met in self.days:
                found.update(met.get(ident, ()))
        else:
            for _, a, b in self.meetings:
                if a == ident:
                    found.add(b)
                elif b == ident:
                    found.add(a)
        return sorted(found)


class Town:
    def __init__(self, size, indexed):
        self.rnd = random.Random(4711)
        rnd = self.rnd
        self.people = [Person(i, rnd.randrange(90), i // 3, rnd.randrange(size // 12)) for i in range(size)]
        self.households = [[] for _ in range(size // 3 + 1)]
        self.workplaces = [[] for _ in range(size // 12)]
        for p in self.people:
            self.households[p.home].append(p.ident)
            if 18 <= p.age < 67:
                self.workplaces[p.work].append(p.ident)
        weights = [1.0 / (k + 3) for k in range(40)]
        self.shop_edges = [sum(weights[: k + 1]) / sum(weights) for k in range(40)]
        self.tracer = ContactTracer(indexed)
        self.curve = [math.exp(-((d - 4.0) ** 2) / 6.0) for d in range(15)]
        self.day = 0
        self.history = []
        self.traced = 0
        self.checksum = 0
        for p in rnd.sample(self.people, 40):
            self.infect(p)

    def infect(self, person):
        person.state = EXPOSED
        person.until = self.day + 2 + self.rnd.randrange(3)

    def progress(self):
        day, rnd = self.day, self.rnd
        sick = []
        for p in self.people:
            if p.state == EXPOSED and day >= p.until:
                p.state = INFECTIOUS
                p.until = day + 6 + rnd.randrange(5)
            elif p.state == INFECTIOUS and day >= p.until:
                p.state = RECOVERED
                p.until = day + 20 + rnd.randrange(30)
            elif p.state == RECOVERED and day >= p.until:
                p.state = SUSCEPTIBLE                # immunity wanes: the town never runs out of cases
            if p.state == INFECTIOUS:
                p.load = self.curve[max(0, min(14, 10 - (p.until - day)))]
                sick.append(p)
            else:
                p.load = 0.0
        return sick

    def meet_at_work(self):
        pairs, day, people, rnd = [], self.day, self.people, self.rnd
        for members in self.workplaces:
            present = [i for i in members if people[i].quarantine <= day]
            if len(present) < 2:
                continue
            rnd.shuffle(present)
            pairs.extend(zip(present[::2], present[1::2]))
        return pairs

    def meet_in_shops(self):
        visitors = [[] for _ in self.shop_edges]
        day, draw, edges = self.day, self.rnd.random, self.shop_edges
        for p in self.people:
            if p.quarantine <= day and draw() < 0.3:
                visitors[min(bisect.bisect_left(edges, draw()), 39)].append(p.ident)
        pairs = []
        for queue in visitors:
            pairs.extend(zip(queue, queue[1:]))
        return pairs

    def spread(self, pairs, chance):
        people, draw = self.people, self.rnd.random
        for a, b in pairs:
            p, q = people[a], people[b]
            if p.load and q.state == SUSCEPTIBLE:
                if draw() < chance * p.load:
                    self.infect(q)
            elif q.load and p.state == SUSCEPTIBLE:
                if draw() < chance * q.load:
                    self.infect(p)

    def spread_at_home(self, sick):
        people, draw = self.people, self.rnd.random
        for p in sick:
            for other in self.households[p.home]:
                q = people[other]
                if q.state == SUSCEPTIBLE and draw() < 0.3 * p.load:
                    self.infect(q)

    def test(self, sick):
        draw = self.rnd.random
        return [p for p in sick if p.quarantine <= self.day and draw() < 0.06 * p.load + 0.004]

    def trace(self, positive):
        for p in positive:
            p.quarantine = self.day + 8
            for other in self.tracer.contacts_of(p.ident):
                q = self.people[other]
                q.seen += 1
                self.traced += 1
                self.checksum = (self.checksum * 33 + other) & 0xFFFFFFFF
                if q.quarantine <= self.day and (other + self.day) % 3 == 0:
                    q.quarantine = self.day + 3

    def statistics(self):
        by_state = [0, 0, 0, 0]
        by_age = [0.0] * 9
        for p in self.people:
            by_state[p.state] += 1
            by_age[p.age // 10] += p.load
        self.history.append(by_state)
        del self.history[:-60]
        mean = sum(h[INFECTIOUS] for h in self.history) / len(self.history)
        return mean, max(by_age)

    def step(self):
        sick = self.progress()
        work = self.meet_at_work()
        shops = self.meet_in_shops()
        self.spread(work, 0.5)
        self.spread(shops, 0.4)
        self.spread_at_home(sick)
        self.tracer.record(self.day, work)
        self.tracer.record(self.day, shops)
        self.tracer.expire(self.day)
        self.trace(self.test(sick))
        mean, _ = self.statistics()
        self.day += 1
        return mean


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: outbreak.py slow|fast [days]")
    days = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    town = Town(3600, sys.argv[1] == "fast")
    total = 0.0
    while not days or town.day < days:
        total += town.step()
    print(f"{total:.6f} {town.traced} {town.checksum:08x}")


if __name__ == "__main__":
    main()
