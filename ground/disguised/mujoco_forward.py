# defect: after each step, each of three sensors computes the whole model again
# kinds: work-done-twice, computed-again
# guilty: Sensors.height, Sensors.touch, Sensors.energy, Sensors.read, Robot.step
# gain: 67 %
# needs: mujoco
"""Boxes that fall, and sensors that look at them."""
import sys

import mujoco
import numpy as np

SLOW = sys.argv[1:2] == ["slow"]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1
XML = "<mujoco><worldbody><geom type='plane' size='5 5 .1'/>" + "".join(
    f"<body pos='{i % 5} {i // 5} {1 + .1 * i}'><freejoint/><geom type='box' size='.2 .2 .2'/></body>" for i in range(20)
) + "</worldbody></mujoco>"


class Sensors:
    def __init__(self, model, data):
        self.model, self.data = model, data

    def update(self):
        if SLOW:
            mujoco.mj_forward(self.model, self.data)

    def height(self):
        self.update()
        return self.data.xpos[:, 2].mean()

    def touch(self):
        self.update()
        return self.data.ncon

    def energy(self):
        self.update()
        return float(np.square(self.data.qvel).sum())

    def read(self):
        return [self.height(), self.touch(), self.energy()]


class Robot:
    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(XML)
        self.data = mujoco.MjData(self.model)
        self.sensors = Sensors(self.model, self.data)

    def step(self):
        mujoco.mj_step(self.model, self.data)
        return self.sensors.read()


robot = Robot()
step = 0
while step != STEPS:
    robot.step()
    step += 1
