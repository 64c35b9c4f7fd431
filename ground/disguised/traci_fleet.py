# defect: five questions for each vehicle in each step go to SUMO one by one; a subscription sends all answers with the step
# kinds: query-per-item, many-messages-each-step
# guilty: Fleet.observe
# gain: 74 %
# needs: sumo netgenerate
# seconds: 12
"""A fleet in SUMO that is watched through TraCI."""
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.environ.get("SUMO_HOME", "/usr/share/sumo"), "tools"))
import traci
import traci.constants as tc

SLOW = sys.argv[1:2] == ["slow"]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else -1
VARIABLES = [tc.VAR_POSITION, tc.VAR_SPEED, tc.VAR_ANGLE, tc.VAR_ROAD_ID, tc.VAR_LANEPOSITION]


class Fleet:
    def __init__(self, folder):
        net, routes = os.path.join(folder, "net.xml"), os.path.join(folder, "routes.xml")
        subprocess.check_call(["netgenerate", "--grid", "--grid.number=5", "-o", net], stdout=subprocess.DEVNULL)
        with open(routes, "w") as out:
            out.write('<routes><vType id="car" maxSpeed="14"/>')
            for i in range(2000):
                a, b = "ABCDE"[i % 5], "ABCDE"[(i + 2) % 5]
                out.write(f'<trip id="v{i}" type="car" depart="{i * 0.5}" from="{a}{i % 4}{a}{i % 4 + 1}" to="{b}{(i + 1) % 4}{b}{(i + 1) % 4 + 1}"/>')
            out.write("</routes>")
        traci.start(["sumo", "-n", net, "-r", routes, "--step-length", "0.1", "--no-step-log", "true", "--no-warnings", "true"])
        self.known = set()

    def observe(self):
        states = {}
        if SLOW:
            for vehicle in traci.vehicle.getIDList():
                states[vehicle] = (
                    traci.vehicle.getPosition(vehicle),
                    traci.vehicle.getSpeed(vehicle),
                    traci.vehicle.getAngle(vehicle),
                    traci.vehicle.getRoadID(vehicle),
                    traci.vehicle.getLanePosition(vehicle),
                )
            return states
        for vehicle in traci.simulation.getDepartedIDList():
            traci.vehicle.subscribe(vehicle, VARIABLES)
        return traci.vehicle.getAllSubscriptionResults()

    def step(self):
        traci.simulationStep()
        states = self.observe()
        return len(states)


with tempfile.TemporaryDirectory() as folder:
    fleet = Fleet(folder)
    step = 0
    while step != STEPS:
        fleet.step()
        step += 1
    traci.close()
