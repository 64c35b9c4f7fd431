# defect: each sheep looks at all agents of the model for those that are near; a grid knows the neighbours
# kinds: full-scan-each-step, list-search
# guilty: Sheep.near, Sheep.step
# gain: 92 %
# needs: mesa
"""Sheep on a meadow, a model of Mesa."""
import sys

import mesa

SLOW = sys.argv[1:2] == ["slow"]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1


class Sheep(mesa.Agent):
    def __init__(self, model):
        super().__init__(model)
        self.pos = None
        self.food = 1.0

    def near(self):
        if SLOW:
            x, y = self.pos
            return [one for one in self.model.agents if one is not self and abs(one.pos[0] - x) <= 1 and abs(one.pos[1] - y) <= 1]
        return self.model.grid.get_neighbors(self.pos, moore=True, include_center=False)

    def step(self):
        crowd = len(self.near())
        self.food += 0.1 - 0.02 * crowd
        cells = self.model.grid.get_neighborhood(self.pos, moore=True, include_center=False)
        self.model.grid.move_agent(self, self.random.choice(cells))


class Meadow(mesa.Model):
    def __init__(self):
        super().__init__(seed=1)
        self.grid = mesa.space.MultiGrid(40, 40, torus=True)
        for _ in range(300):
            cell = (self.random.randrange(40), self.random.randrange(40))
            self.grid.place_agent(Sheep(self), cell)

    def step(self):
        self.agents.shuffle_do("step")


meadow = Meadow()
step = 0
while step != STEPS:
    meadow.step()
    step += 1
