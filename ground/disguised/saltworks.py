# defect: while pans are checked, the whole works is copied with copy.deepcopy for each trial
# kinds: copies-each-step
# guilty: try_pan, trials
# seconds: 20
import copy
import math
import sys


class Pan:
    def __init__(self, number):
        self.number, self.brine, self.salt = number, 1.0 + number * 0.01, 0.0
        self.history = [0.1 * i for i in range(12)]


class Works:
    def __init__(self, pans):
        self.pans = [Pan(i) for i in range(pans)]
        self.heat = 1.0


def boil(works, hours):
    for hour in range(hours):
        for pan in works.pans:
            steam = 0.01 * works.heat * math.exp(-pan.salt) + 1e-4 * math.sin(hour)
            pan.brine -= steam * 0.01
            pan.salt += steam * 0.003
            pan.history[hour % 12] = steam


def try_pan(works, index, copies):
    one = copy.deepcopy(works).pans[index] if copies else works.pans[index]
    yield_ = one.salt
    for minute in range(60):
        yield_ += 0.001 * math.sqrt(one.brine + minute) * one.history[minute % 12]
    return yield_


def trials(works, number, copies):
    return [try_pan(works, i % len(works.pans), copies) for i in range(number)]


def sell(yields, rounds):
    price = 1.0
    for k in range(rounds):
        for one in yields:
            price += 1e-4 * (one - price) + 1e-5 * math.cos(k)
    return price


def main():
    copies = sys.argv[1] == "slow"
    works = Works(60)
    boil(works, 6000)
    yields = trials(works, 700, copies)
    print(sell(yields, 1800))


main()
