# defect: the table of stops has no index, so each query of a bus reads the whole table
# kinds: full-scan-each-step
# guilty: Timetable.next_stop
# gain: 90 %
"""Buses that ask a timetable in SQLite for their next stop."""
import math
import sqlite3
import sys

SLOW = sys.argv[1:2] == ["slow"]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Timetable:
    def __init__(self):
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE stops (line INTEGER, minute INTEGER, place REAL)")
        rows = [(line, minute, math.sin(line) * minute) for line in range(100) for minute in range(60)]
        self.database.executemany("INSERT INTO stops VALUES (?, ?, ?)", rows)
        if not SLOW:
            self.database.execute("CREATE INDEX by_line ON stops (line, minute)")

    def next_stop(self, line, minute):
        query = "SELECT place FROM stops WHERE line = ? AND minute >= ? ORDER BY minute LIMIT 1"
        return self.database.execute(query, (line, minute)).fetchone()


class Bus:
    def __init__(self, line):
        self.line, self.place = line, 0.0

    def step(self, timetable, minute):
        stop = timetable.next_stop(self.line, minute)
        target = stop[0] if stop else 0.0
        for _ in range(400):
            self.place += 0.01 * (target - self.place)


timetable = Timetable()
buses = [Bus(line) for line in range(100)]
step = 0
while step != STEPS:
    for bus in buses:
        bus.step(timetable, step % 60)
    step += 1
