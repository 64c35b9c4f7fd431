# defect: customers ask every tenth of a second whether a clerk is free; a resource of SimPy wakes them
# kinds: polling
# guilty: Bank.customer
# gain: 77 %
# needs: simpy
"""A bank in SimPy."""
import random
import sys

import simpy

SLOW = sys.argv[1:2] == ["slow"]
UNTIL = float(sys.argv[2]) if len(sys.argv) > 2 else 1e9


class Bank:
    def __init__(self, environment):
        self.environment = environment
        self.clerks = simpy.Resource(environment, capacity=4)
        self.free = 4
        self.served = 0
        self.waited = 0.0

    def customer(self):
        arrived = self.environment.now
        if SLOW:
            while self.free == 0:
                yield self.environment.timeout(0.1)
            self.free -= 1
            yield from self.serve(arrived)
            self.free += 1
        else:
            with self.clerks.request() as request:
                yield request
                yield from self.serve(arrived)

    def serve(self, arrived):
        self.waited += self.environment.now - arrived
        yield self.environment.timeout(random.expovariate(1 / 3.6))
        self.served += 1

    def arrivals(self):
        while True:
            yield self.environment.timeout(random.expovariate(1.0))
            self.environment.process(self.customer())


random.seed(3)
environment = simpy.Environment()
bank = Bank(environment)
environment.process(bank.arrivals())
environment.run(until=UNTIL)
