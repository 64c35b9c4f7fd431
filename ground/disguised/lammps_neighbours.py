# defect: the script of LAMMPS builds the lists of neighbours in every step, without a look whether atoms have moved
# kinds: slow-setting
# guilty: LAMMPS_NS::Neighbor::build, LAMMPS_NS::Verlet::run
# gain: 60 %
# needs: lmp
# seconds: 20
"""Argon, by the program `lmp`."""
import os
import sys
import tempfile

SETTING = "every 1 delay 0 check no" if sys.argv[1] == "slow" else "every 1 delay 5 check yes"
STEPS = sys.argv[2] if len(sys.argv) > 2 else "400"
SCRIPT = f"""
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify {SETTING}
fix 1 all nve
thermo 100
run {STEPS}
"""

folder = tempfile.gettempdir()
path = os.path.join(folder, f"in.argon_{sys.argv[1]}")
with open(path, "w") as out:
    out.write(SCRIPT)
os.execvp("lmp", ["lmp", "-in", path, "-log", "none", "-screen", "none"])
