// defect: each event sets an attribute of a device by its path in the tree of objects; the device is at hand
// kinds: text-keys-each-step, text-compared-each-step, values-through-text, allocations-each-step
// guilty: Link::Adapt, ns3::Config::Set
// gain: 72 %
// needs: /usr/include/ns3/point-to-point-module.h
// build: -O2 -g -std=c++17
// libraries: -lns3-core -lns3-network -lns3-internet -lns3-point-to-point -lns3-applications
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static bool slow;

struct Link {
    Ptr<PointToPointNetDevice> device;
    uint32_t node;
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();

    void Adapt() {
        DataRate rate(uint64_t(random->GetValue(50e6, 100e6)));
        if (slow) {
            std::string path = "/NodeList/" + std::to_string(node) + "/DeviceList/*/$ns3::PointToPointNetDevice/DataRate";
            Config::Set(path, DataRateValue(rate));
        } else {
            device->SetDataRate(rate);
        }
        Simulator::Schedule(MilliSeconds(1), &Link::Adapt, this);
    }
};

int main(int argc, char **argv) {
    slow = argc > 1 && !std::strcmp(argv[1], "slow");
    double seconds = argc > 2 ? std::atof(argv[2]) : 1e6;
    NodeContainer nodes;
    nodes.Create(40);
    InternetStackHelper stack;
    stack.Install(nodes);
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    std::vector<Link> links;
    for (uint32_t i = 0; i < 40; i += 2) {
        NetDeviceContainer devices = helper.Install(nodes.Get(i), nodes.Get(i + 1));
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), 9));
        source.SetConstantRate(DataRate("4Mbps"), 512);
        source.Install(nodes.Get(i)).Start(Seconds(0));
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        sink.Install(nodes.Get(i + 1)).Start(Seconds(0));
        links.push_back({DynamicCast<PointToPointNetDevice>(devices.Get(0)), i});
    }
    for (auto &link : links) Simulator::Schedule(MilliSeconds(1), &Link::Adapt, &link);
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Simulator::Destroy();
}
