# defect: finished tasks are taken out of a list, which is searched for each
# kinds: list-search
# guilty: -
import math
import sys

import stepscope_marks as marks


class Task:
    def __init__(self, number):
        self.number = number
        self.left = 1 + number % 7


class Tasks:
    def __init__(self, slow):
        self.all = [Task(i) for i in range(1200)]
        self.open = list(self.all) if slow else dict.fromkeys(self.all)
        self.slow = slow

    def step(self, step):
        for i in range(60):
            task = self.all[(step * 61 + i * 19) % len(self.all)]
            if self.slow:
                self.open.remove(task)
                self.open.append(task)
            else:
                del self.open[task]
                self.open[task] = None


def main():
    tasks = Tasks(sys.argv[1] == "slow")
    print("ready", flush=True)
    step = 0
    while True:
        marks.step(step * 0.01)
        tasks.step(step)
        load = 0.0
        for i in range(2500):
            load += math.sqrt(step + i)
        step += 1


main()
