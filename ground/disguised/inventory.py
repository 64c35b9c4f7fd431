# defect: the stock of each robot is asked for with a statement of its own, in each tick
# kinds: query-per-item
# guilty: -
"""A small warehouse whose state is in a database."""
import math
import sqlite3
import sys

SLOW = sys.argv[1:] == ["slow"]


class Stock:
    def __init__(self, robots):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table stock (robot integer, part integer, amount real, primary key (robot, part))")
        rows = [(r, p, r * 0.5 + p) for r in range(robots) for p in range(4)]
        self.db.executemany("insert into stock values (?, ?, ?)", rows)
        self.robots = robots

    def amounts(self):
        if SLOW:
            query = "select sum(amount) from stock where robot = ?"
            return [self.db.execute(query, (robot,)).fetchone()[0] for robot in range(self.robots)]
        return [total for _, total in self.db.execute("select robot, sum(amount) from stock group by robot order by robot")]


def tick(stock, at):
    total = sum(math.sqrt(one) for one in stock.amounts())
    for i in range(1500):
        total += math.sin(at + i)
    return total


stock = Stock(250)
at = 0
while True:
    tick(stock, at)
    at += 1
