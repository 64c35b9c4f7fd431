# defect: each agent computes the shortest path to its goal again in each step, though neither the map nor its goal has changed
# kinds: computed-again
# guilty: Agent.step, Agent.route
# gain: 84 %
# needs: networkx
"""Agents that run errands in a town."""
import random
import sys

import networkx

SLOW = sys.argv[1:2] == ["slow"]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Agent:
    def __init__(self, town, at):
        self.town, self.at = town, at
        self.goal, self.path = at, []

    def route(self):
        return networkx.shortest_path(self.town, self.at, self.goal, weight="length")

    def step(self):
        if self.at == self.goal:
            self.goal = random.choice(NODES)
            self.path = self.route()[1:]
        elif SLOW:
            self.path = self.route()[1:]
        if self.path:
            self.at = self.path.pop(0)


town = networkx.grid_2d_graph(14, 14)
random.seed(1)
for a, b in town.edges:
    town.edges[a, b]["length"] = random.uniform(1, 2)
NODES = list(town.nodes)
agents = [Agent(town, random.choice(NODES)) for _ in range(30)]
step = 0
while step != STEPS:
    for agent in agents:
        agent.step()
    step += 1
