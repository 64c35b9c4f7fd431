"""A simulation driven from Python, for a number of steps. Prints CPU microseconds of one step.

usage: steps.py NAME STEPS
"""
import sys
import time


def mujoco():
    import mujoco

    joints = "".join(
        f'<body pos="{i % 5} {i // 5} 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body>'
        for i in range(20)
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{joints}</worldbody></mujoco>")
    data = mujoco.MjData(model)

    def control():
        data.qfrc_applied[0] = 0.1 * data.qpos[1]

    def observe():
        return data.qpos.sum()

    def step():
        control()
        mujoco.mj_step(model, data)
        return observe()

    return step


def pybullet():
    import pybullet

    pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.8)
    box = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.1] * 3)
    pybullet.createMultiBody(0, pybullet.createCollisionShape(pybullet.GEOM_PLANE))
    bodies = [pybullet.createMultiBody(1, box, basePosition=[0, 0.05 * i, 0.2 + 0.25 * i]) for i in range(20)]

    def observe():
        return pybullet.getBasePositionAndOrientation(bodies[-1])

    def step():
        pybullet.stepSimulation()
        return observe()

    return step


def simpy():
    import random

    import simpy

    environment = simpy.Environment()
    server = simpy.Resource(environment, capacity=2)
    draw = random.Random(1).expovariate

    def customer():
        with server.request() as request:
            yield request
            yield environment.timeout(draw(1.2))

    def source():
        while True:
            yield environment.timeout(draw(2.0))
            environment.process(customer())

    environment.process(source())
    return environment.step


def mesa():
    import mesa

    class Walker(mesa.Agent):
        def __init__(self, model):
            super().__init__(model)
            self.wealth = 1

        def exchange(self):
            other = self.random.choice(self.model.everyone)
            if self.wealth > 0 and other is not None:
                other.wealth += 1
                self.wealth -= 1

    class Money(mesa.Model):
        def __init__(self):
            super().__init__()
            self.everyone = [Walker(self) for _ in range(50)]

        def step(self):
            self.agents.shuffle_do("exchange")

    return Money().step


def gymnasium():
    import gymnasium

    world = gymnasium.make("CartPole-v1")
    world.reset(seed=1)

    def step():
        _, _, ended, cut, _ = world.step(1)
        if ended or cut:
            world.reset()

    return step


def calls():
    """The worst case: nothing but calls of Python functions."""

    def empty():
        pass

    def step():
        for _ in range(100):
            empty()

    return step


step = globals()[sys.argv[1]]()
for _ in range(100):
    step()
start = time.process_time()
for _ in range(int(sys.argv[2])):
    step()
print(f"step {1e6 * (time.process_time() - start) / int(sys.argv[2]):.4f}")
