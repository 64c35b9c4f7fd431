# defect: the observation asks for each body by its name in every step; the array of all positions is there
# kinds: text-keys-each-step, text-compared-each-step, query-per-item
# guilty: Arm.observe
# gain: 77 %
# needs: mujoco
"""Chains of links that swing; the observation is where the links are."""
import sys

import mujoco
import numpy as np

SLOW = sys.argv[1:2] == ["slow"]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


def chain(number):
    links = "".join(
        f"<body name='arm{number}_link{i}' pos='0 0 -.2'><joint axis='0 1 0' damping='.1'/>"
        "<geom type='capsule' fromto='0 0 0 0 0 -.2' size='.02' contype='0' conaffinity='0'/>"
        for i in range(10)
    )
    return f"<body pos='0 {number} 2'>{links}{'</body>' * 10}</body>"


class Arm:
    def __init__(self):
        text = "<mujoco><worldbody>" + "".join(chain(i) for i in range(4)) + "</worldbody></mujoco>"
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self.names = [f"arm{a}_link{i}" for a in range(4) for i in range(10)]
        self.ids = [self.model.body(name).id for name in self.names]

    def observe(self):
        if SLOW:
            return np.concatenate([self.data.body(name).xpos for name in self.names])
        return self.data.xpos[self.ids].ravel()

    def step(self):
        self.data.qvel[0] += 0.01
        mujoco.mj_step(self.model, self.data)
        return self.observe().sum()


arm = Arm()
step = 0
while step != STEPS:
    arm.step()
    step += 1
