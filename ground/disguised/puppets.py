# defect: a planner computes in a thread of the same interpreter, so the control loop of 100 Hz waits for the interpreter's lock in each cycle
# kinds: gil-wait
# guilty: Stage.step, Stage.run, Puppet.move
import math
import sys
import threading
import time

SLOW = len(sys.argv) > 1 and sys.argv[1] == "slow"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Planner(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.plan = []

    def search(self, goal):
        best, cost = None, 1e9
        for x in range(300):
            for y in range(40):
                here = abs(x - goal) + abs(y - goal * 0.1) + math.sin(x * 0.1) * 3
                if here < cost:
                    best, cost = (x, y), here
        return best

    def run(self):
        goal = 0
        while True:
            self.plan.append(self.search(goal % 200))
            del self.plan[:-20]
            goal += 7
            # Without the defect the planner has a process of its own; here it just rests.
            if not SLOW:
                time.sleep(10)


class Puppet:
    def __init__(self, number):
        self.angles = [number * 0.01 + i for i in range(12)]

    def move(self, t):
        self.angles = [angle + 0.01 * math.sin(t + angle) for angle in self.angles]


class Stage:
    def __init__(self):
        self.puppets = [Puppet(i) for i in range(200)]

    def step(self, t):
        for puppet in self.puppets:
            puppet.move(t)

    def run(self):
        begin = time.monotonic()
        step = 0
        while step != STEPS:
            self.step(step * 0.01)
            # The state goes out through a file descriptor, which lets go of the interpreter's lock.
            sys.stderr.write("")
            step += 1
            if STEPS < 0:
                time.sleep(0.005)
        print((time.monotonic() - begin) / max(step, 1))


Planner().start()
Stage().run()
