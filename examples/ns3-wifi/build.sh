#!/bin/sh
# Builds the driver beside its source. Debian 12: apt-get install -y g++ libns3-dev
set -eu
cd "$(dirname "$0")"
[ build/wifi_stations -nt wifi_stations.cc ] && [ build/wifi_stations -nt ../../marks/c/stepscope.h ] && exit
mkdir -p build
# Not by pkg-config: its list of libraries names GSL and others that only ns-3's optional models need.
g++ -std=c++17 -O2 -g -DSTEPSCOPE_MARKS=1 -I../../marks/c -o build/wifi_stations wifi_stations.cc \
    -lns3-applications -lns3-internet -lns3-mobility -lns3-network -lns3-wifi -lns3-core
