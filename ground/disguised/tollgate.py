# defect: the index of cars by their lane is built again from all cars for each gate, as a dictionary of lists
# kinds: allocations-each-step, rebuilt-each-step, full-scan-each-step
# guilty: Road.by_lane, Gate.open, Road.tick, Gate.__call__
import math
import sys


class Car:
    def __init__(self, number):
        self.number, self.lane, self.place = number, number % 40, 0.0

    def drive(self, time):
        self.place += 0.1 * math.sin(time + self.number) + math.sqrt(self.number) * 0.01


class Road:
    def __init__(self, cars, rebuilds):
        self.cars = [Car(number) for number in range(cars)]
        self.rebuilds = rebuilds
        self.index = self.by_lane()

    def by_lane(self):
        return {lane: [(car.place, car.number) for car in self.cars[lane::40]] for lane in range(40)}

    def tick(self, time, gates):
        for car in self.cars:
            car.drive(time)
        self.index = self.by_lane()
        return sum(gate(self) for gate in gates)


class Gate:
    def __init__(self, lane):
        self.lane = lane

    def __call__(self, road):
        index = road.by_lane() if road.rebuilds else road.index
        return sum(place for place, _ in index[self.lane])


def main():
    road = Road(1200, sys.argv[1] == "slow")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60
    gates = [Gate(lane) for lane in range(12)]
    total = 0.0
    for step in range(steps):
        total += road.tick(step * 0.01, gates)
    print(total)


main()
