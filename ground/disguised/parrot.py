# defect: the state goes to the observer as JSON text in the same process, and is parsed there again
# kinds: values-through-text
# guilty: Observer.see, Parrot.step
# options: --with python
import json
import math
import sys

SLOW = sys.argv[1:] == ["slow"]


class Observer:
    def __init__(self):
        self.heard = 0.0

    def see(self, state):
        if SLOW:
            state = json.loads(json.dumps(state))
        self.heard += sum(state["position"]) + state["speed"]


class Parrot:
    def __init__(self):
        self.state = {"position": [0.0] * 60, "speed": 0.0, "colours": ["green", "red"] * 10}

    def step(self, at, observer):
        for i in range(60):
            self.state["position"][i] += 1e-3 * math.sin(at + i)
        for i in range(600):
            self.state["speed"] += 1e-6 * math.cos(at * i)
        observer.see(self.state)


parrot, observer = Parrot(), Observer()
at = 0
while True:
    parrot.step(at, observer)
    at += 1
