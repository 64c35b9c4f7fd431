# defect: none; nearest points, a breadth-first search, filters by distance, a parent chain that is a path, and tables of numbers
# kinds: -
# guilty: -
import math
import sys
from collections import deque


class Point:
    def __init__(self, number):
        self.number, self.x, self.y = number, math.sin(number * 1.7) * 10, math.cos(number * 2.3) * 10


def nearest(points, x, y):
    best, found = 1e9, None
    for point in points:
        d = (point.x - x) ** 2 + (point.y - y) ** 2
        if d < best:
            best, found = d, point
    return found


def search(graph, start, goal):
    came, queue = {start: None}, deque([start])
    while queue:
        at = queue.popleft()
        if at == goal:
            break
        for other in graph[at]:
            if other not in came:
                came[other] = at
                queue.append(other)
    path, at = [], goal
    while at is not None:
        path.append(at)
        at = came.get(at)
    return path


def near(points, x, y):
    return [point for point in points if math.hypot(point.x - x, point.y - y) < 3]


def relax(table):
    for i in range(1, len(table) - 1):
        table[i] = 0.25 * table[i - 1] + 0.5 * table[i] + 0.25 * table[i + 1]
    return sum(table)


points = [Point(i) for i in range(150)]
graph = [[(i + 1) % 300, (i * 7 + 3) % 300, (i * 13 + 5) % 300] for i in range(300)]
table, total = [math.sin(i) for i in range(800)], 0.0
for step in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60):
    total += nearest(points, math.sin(step), math.cos(step)).x
    total += len(search(graph, step % 300, (step * 31) % 300)) + len(near(points, step % 7, step % 5))
    total += relax(table)
