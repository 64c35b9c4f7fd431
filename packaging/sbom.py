"""Prints what the program contains, as CycloneDX JSON: the crates of Cargo.lock that `cargo tree` names for a target.

    python3 packaging/sbom.py TARGET
"""

import json
import re
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
command = ["cargo", "tree", "--locked", "--target", sys.argv[1], "-e", "normal,build", "--prefix", "none", "--no-dedupe",
           "-p", "stepscope", "-p", "stepscope-ground", "-f", "{p}|{l}"]
lines = set(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines())

checksums = {}
for package in (root / "Cargo.lock").read_text().split("[[package]]")[1:]:
    values = dict(re.findall(r'^(\w+) = "(.*)"$', package, re.M))
    checksums[values["name"], values["version"]] = values.get("checksum")

components = {}
for line in filter(None, lines):
    crate, licence = line.split("|")
    name, version = crate.split()[0], crate.split()[1].lstrip("v")
    component = {"type": "library", "name": name, "version": version}
    if licence:
        # Older crates write a slash.
        component["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if checksums.get((name, version)):
        component["purl"] = f"pkg:cargo/{name}@{version}"
        component["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    components[name, version] = component

version = components[next(key for key in components if key[0] == "stepscope")]["version"]
print(json.dumps({
    "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
    "metadata": {"component": {"type": "application", "name": "stepscope", "version": version}},
    "components": [components[key] for key in sorted(components)],
}, indent=1))
