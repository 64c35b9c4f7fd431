# defect: each episode loads the robots from URDF again; their state can be restored
# kinds: parsed-each-step, file-opened-each-time
# guilty: Simulation.reset, Simulation.load
# gain: 81 %
# needs: pybullet
"""Episodes with two arms."""
import os
import sys
import tempfile

import pybullet

SLOW = sys.argv[1:2] == ["slow"]
EPISODES = int(sys.argv[2]) if len(sys.argv) > 2 else -1


def arm():
    text = "<robot name='arm'><link name='l0'><inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial></link>"
    for i in range(1, 8):
        text += (
            f"<link name='l{i}'><inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial>"
            "<collision><origin xyz='0 0 .15'/><geometry><cylinder radius='.05' length='.25'/></geometry></collision></link>"
            f"<joint name='j{i}' type='revolute'><parent link='l{i - 1}'/><child link='l{i}'/><origin xyz='0 0 .3'/><axis xyz='{i % 2} {1 - i % 2} 0'/>"
            "<limit lower='-2' upper='2' effort='50' velocity='2'/></joint>"
        )
    return text + "</robot>"


class Simulation:
    def __init__(self):
        self.client = pybullet.connect(pybullet.DIRECT)
        handle, self.file = tempfile.mkstemp(suffix=".urdf")
        os.write(handle, arm().encode())
        os.close(handle)
        self.load()
        self.saved = pybullet.saveState()

    def load(self):
        pybullet.resetSimulation()
        pybullet.setGravity(0, 0, -9.81)
        self.robots = [pybullet.loadURDF(self.file, [i, 0, 0], useFixedBase=True) for i in range(2)]

    def reset(self):
        if SLOW:
            self.load()
        else:
            pybullet.restoreState(self.saved)

    def episode(self):
        self.reset()
        reward = 0
        for step in range(20):
            for robot in self.robots:
                pybullet.setJointMotorControlArray(robot, range(7), pybullet.POSITION_CONTROL, [0.5] * 7)
            pybullet.stepSimulation()
            reward -= sum(state[0] ** 2 for state in pybullet.getJointStates(self.robots[0], range(7)))
        return reward


simulation = Simulation()
episode = 0
while episode != EPISODES:
    simulation.episode()
    episode += 1
os.remove(simulation.file)
