# defect: while tolls are charged, travellers without a pass are found out by a KeyError, for most of them
# kinds: exceptions-each-step
# guilty: Gate.rate, charge
# seconds: 20
import math
import sys


class Gate:
    def __init__(self, passes, asks):
        self.passes, self.asks = passes, asks

    def rate(self, traveller):
        if self.asks:
            return self.passes.get(traveller, 1.0)
        try:
            return self.passes[traveller]
        except KeyError:
            return 1.0


def traffic(number):
    flow, travellers = 0.5, []
    for i in range(number):
        flow = 3.7 * flow * (1 - flow)
        travellers.append(int(flow * 1e6) % 50000)
    return travellers


def charge(gate, travellers):
    toll = 0.0
    for traveller in travellers:
        toll += gate.rate(traveller) * (1 + traveller % 5)
    return toll


def wear(travellers, rounds):
    road = [0.0] * 200
    for k in range(rounds):
        for i in range(1, len(road) - 1):
            road[i] += 0.1 * (road[i - 1] - 2 * road[i] + road[i + 1]) + math.sin(travellers[(i * k) % 1000]) * 1e-3
    return sum(road)


def main():
    asks = sys.argv[1] != "slow"
    travellers = traffic(900000)
    gate = Gate({one: 0.5 for one in range(0, 50000, 17)}, asks)
    toll = charge(gate, travellers)
    print(toll, wear(travellers, 9000))


main()
