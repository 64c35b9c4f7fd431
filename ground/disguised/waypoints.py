# defect: visited cells are kept in a list, which is searched for each move
# kinds: list-search
# guilty: -
import math
import sys

import stepscope_marks as marks


def main():
    slow = sys.argv[1] == "slow"
    cells = [(i * 7919) % 1500 for i in range(1500)]
    visited = cells if slow else set(cells)
    print("ready", flush=True)
    step = 0
    while True:
        marks.step(step * 0.01)
        height = 0.0
        for i in range(3000):
            height += math.sin(step * 0.01 + i) * 0.5
        hits = 0
        for i in range(200):
            if (step * 31 + i * 17) % 3000 in visited:
                hits += 1
        step += 1


main()
