#!/bin/sh
# Installs MuJoCo beside the driver. Debian 12: apt-get install -y python3-venv
set -eu
cd "$(dirname "$0")"
venv/bin/python3 -c 'import mujoco' 2>/dev/null && exit
[ -x venv/bin/python3 ] || python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mujoco==4.0.0
