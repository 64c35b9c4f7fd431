# defect: each bird's forces are sums of NumPy arrays of two numbers, made and thrown away by the thousand, in a loop over neighbours
# kinds: small-arrays-each-step, allocations-each-step
# guilty: Bird.steer, Flock.step
# needs: numpy
# options: --with python
import math
import sys

import numpy as np

SLOW = sys.argv[1:2] == ["slow"]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 0


class Bird:
    def __init__(self, number):
        self.place = np.array([math.cos(number), math.sin(number)])
        self.speed = np.array([math.sin(number), math.cos(number)])

    def steer(self, others):
        force = np.zeros(2)
        for other in others:
            away = self.place - other.place
            far = np.linalg.norm(away) + 0.1
            force += away / far ** 2
            force += 0.01 * (other.speed - self.speed)
        self.speed = np.clip(self.speed + 0.01 * force, -1.0, 1.0)

    def move(self):
        self.place = self.place + 0.01 * self.speed


class Flock:
    def __init__(self, number):
        self.birds = [Bird(i) for i in range(number)]
        self.places = np.array([bird.place for bird in self.birds])
        self.speeds = np.array([bird.speed for bird in self.birds])

    def step_all(self):
        away = self.places[:, None, :] - self.places[None, :, :]
        far = np.sqrt((away ** 2).sum(axis=2)) + 0.1
        force = (away / far[:, :, None] ** 2).sum(axis=1) + 0.01 * (self.speeds[None, :, :] - self.speeds[:, None, :]).sum(axis=1)
        self.speeds = np.clip(self.speeds + 0.01 * force, -1.0, 1.0)
        self.places = self.places + 0.01 * self.speeds

    def step(self):
        if not SLOW:
            self.step_all()
            return
        for bird in self.birds:
            bird.steer(self.birds)
        for bird in self.birds:
            bird.move()


class Falcon:
    def __init__(self):
        self.x = self.hunger = 0.0

    def hunt(self, at):
        for i in range(3000):
            self.hunger += 1e-5 * math.sin(self.x + i)
            self.x += 1e-4 * math.cos(at)


class Sky:
    def __init__(self):
        self.clouds = np.zeros((300, 300))

    def drift(self, at):
        self.clouds = 0.99 * np.roll(self.clouds, 1, axis=0) + 0.01 * math.sin(at)


def evening(flock, falcon, sky):
    at = 0
    while COUNT == 0 or at < COUNT:
        flock.step()
        falcon.hunt(at)
        sky.drift(at)
        at += 1


evening(Flock(40), Falcon(), Sky())
