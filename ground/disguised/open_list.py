# defect: a planner sorts its open list for each node that it expands
# kinds: sort-each-step
# guilty: -
import bisect
import math
import sys

import stepscope_marks as marks

slow = sys.argv[1:] == ["slow"]


def plan(goal):
    frontier = [(math.sin(i * 0.37), i) for i in range(400)]
    frontier.sort()
    for i in range(60):
        cost, node = frontier.pop(0)
        entry = (cost + math.cos(node * goal), 1000 + i)
        if slow:
            frontier.append(entry)
            frontier.sort(key=lambda one: (one[0], one[1]))
        else:
            bisect.insort(frontier, entry)
    return frontier[0]


print("ready", flush=True)
step = 0
while True:
    marks.step(step * 0.001)
    plan(step % 17)
    step += 1
