# defect: readings that are no numbers are found by letting float() fail, which most of them do
# kinds: exceptions-each-step
# guilty: Desk.value, Desk.step
import sys
import time

SLOW = len(sys.argv) > 1 and sys.argv[1] == "slow"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Desk:
    def __init__(self, number):
        self.forms = [f"{i}.5" if i % 5 == 0 else f"n/a {i}" for i in range(number)]
        self.average = 0.0

    def value(self, text):
        if SLOW:
            try:
                return float(text)
            except ValueError:
                return None
        return float(text) if text[0].isdigit() else None

    def smooth(self, values):
        for value in values:
            self.average += 0.1 * (value - self.average)
        return self.average

    def step(self):
        values = [self.value(text) for text in self.forms]
        return self.smooth([value for value in values if value is not None])


def main():
    desk = Desk(3000)
    step = 0
    while step != STEPS:
        desk.step()
        step += 1
        if STEPS < 0:
            time.sleep(0.003)
    print(desk.average)


main()
