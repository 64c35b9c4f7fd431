# defect: each episode compiles its model from XML again, which a reset of the data would do
# kinds: parsed-each-step, values-through-text
# guilty: Environment.reset
# options: --with python
# needs: mujoco
"""Short episodes of reinforcement learning."""
import sys

import mujoco

SLOW = sys.argv[1:] == ["slow"]
XML = "<mujoco><worldbody><geom type='plane' size='5 5 .1'/>" + "".join(
    f"<body pos='{i % 5} {i // 5} 1'><freejoint/><geom type='capsule' size='.1 .2'/></body>" for i in range(25)
) + "</worldbody></mujoco>"


class Environment:
    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(XML)
        self.data = mujoco.MjData(self.model)

    def reset(self):
        if SLOW:
            self.model = mujoco.MjModel.from_xml_string(XML)
            self.data = mujoco.MjData(self.model)
        else:
            mujoco.mj_resetData(self.model, self.data)

    def episode(self, length):
        self.reset()
        for _ in range(length):
            mujoco.mj_step(self.model, self.data)


environment = Environment()
while True:
    environment.episode(20)
