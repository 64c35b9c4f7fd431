#!/bin/sh
# Builds the driver beside its source. Debian 12:
#   apt-get install -y g++ libdart-dev libdart-collision-ode-dev
set -eu
cd "$(dirname "$0")"
[ build/dart_shapes -nt dart_shapes.cpp ] && exit
mkdir -p build
# No -march: Eigen's alignment follows from the instruction set, and must be that of the distribution's library.
g++ -std=c++17 -O2 -g -o build/dart_shapes dart_shapes.cpp -I/usr/include/eigen3 -ldart-collision-ode -ldart
