# defect: twelve dispensers ask their queues for orders with a time-out of a few milliseconds, though orders are rare
# kinds: polling
# guilty: Dispenser.run, Dispenser.wait
import math
import queue
import sys
import threading
import time

SLOW = len(sys.argv) > 1 and sys.argv[1] == "slow"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Dispenser(threading.Thread):
    def __init__(self, number):
        super().__init__(daemon=True)
        self.orders = queue.Queue()
        self.number = number
        self.given = 0

    def wait(self):
        if not SLOW:
            return self.orders.get()
        while True:
            try:
                return self.orders.get(timeout=0.003)
            except queue.Empty:
                if self.given < 0:
                    return None

    def run(self):
        while True:
            order = self.wait()
            if order is None:
                return
            self.given += math.sqrt(order)


class Shop:
    def __init__(self):
        self.dispensers = [Dispenser(i) for i in range(12)]
        for one in self.dispensers:
            one.start()
        self.customers = [i * 0.1 for i in range(1500)]

    def step(self, number):
        self.customers = [place + 0.01 * math.sin(place + number) for place in self.customers]
        if number % 20 == 0:
            self.dispensers[number // 20 % 12].orders.put(number)


def main():
    shop = Shop()
    step = 0
    while step != STEPS:
        shop.step(step)
        step += 1
        time.sleep(0.01)
    print(step)


main()
