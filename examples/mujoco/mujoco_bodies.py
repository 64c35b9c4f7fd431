"""N free bodies in a MuJoCo world.

    python3 mujoco_bodies.py N [STEPS]

STEPS of 0 (the default) runs until SIGINT or SIGTERM. Prints `mujoco_bodies: ready` after the first step.
"""

import math
import signal
import sys
import time

import mujoco

SHAPES = (
    '<geom type="box" size="0.5 0.5 0.5"/>',
    '<geom type="cylinder" size="0.5 0.5"/>',
    '<geom type="sphere" size="0.5"/>',
)


def world(n: int) -> str:
    """MJCF of N shapes on a floor, two metres apart."""
    edge = math.ceil(math.sqrt(n))
    bodies = "".join(
        f'<body name="shape_{i}" pos="{2 * (i % edge)} {2 * (i // edge)} 0.5"><freejoint/>{SHAPES[i % 3]}</body>'
        for i in range(n)
    )
    return f"""
    <mujoco model="shapes">
      <option timestep="0.001"/>
      <worldbody><geom type="plane" size="1000 1000 1"/>{bodies}</worldbody>
    </mujoco>"""


def main() -> int:
    """Load, step, say how it went."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if n <= 0:
        print(__doc__, file=sys.stderr)
        return 2
    stopped = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)

    began = time.monotonic()
    model = mujoco.MjModel.from_xml_string(world(n))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    print(f"mujoco_bodies: ready n={n} load_s={time.monotonic() - began:.3f}", flush=True)

    running = time.monotonic()
    step = 1
    while (steps == 0 or step < steps) and not stopped:
        mujoco.mj_step(model, data)
        step += 1
    wall = time.monotonic() - running
    rtf = (step - 1) * model.opt.timestep / max(wall, 1e-9)
    print(f"mujoco_bodies: done steps={step} wall_s={wall:.3f} rtf={rtf:.3f} contacts={data.ncon}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
