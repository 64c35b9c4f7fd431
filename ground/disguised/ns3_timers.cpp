// defect: the scheduler of ns-3 is ListScheduler, which looks for the place of each event from the front; the default is a map
// kinds: slow-setting, list-search
// guilty: ns3::ListScheduler::Insert, Node::Beacon
// gain: 68 %
// needs: /usr/include/ns3/core-module.h
// build: -O2 -g -std=c++17
// libraries: -lns3-core
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "ns3/core-module.h"

using namespace ns3;

struct Node {
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    double load = 0;
    void Beacon() {
        for (int i = 0; i < 20; ++i) load += 1e-3 * random->GetValue(0, 1);
        Simulator::Schedule(Seconds(random->GetValue(0.5, 1.5)), &Node::Beacon, this);
    }
};

int main(int argc, char **argv) {
    if (argc > 1 && !std::strcmp(argv[1], "slow")) {
        ObjectFactory factory;
        factory.SetTypeId("ns3::ListScheduler");
        Simulator::SetScheduler(factory);
    }
    std::vector<Node> nodes(1000);
    for (auto &node : nodes) Simulator::Schedule(MilliSeconds(1), &Node::Beacon, &node);
    Simulator::Stop(Seconds(argc > 2 ? std::atof(argv[2]) : 1e6));
    Simulator::Run();
    std::printf("%g\n", nodes[0].load);
    Simulator::Destroy();
}
