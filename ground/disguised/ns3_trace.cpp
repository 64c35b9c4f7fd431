// defect: the sink of a trace opens its file for each record
// kinds: file-opened-each-time
// guilty: Received, Log::Append
// gain: 9 %, w 22 %
// needs: /usr/include/ns3/internet-module.h
// build: -O2 -g -std=c++17
// libraries: -lns3-core -lns3-network -lns3-internet -lns3-point-to-point -lns3-applications
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static bool slow;
static std::ofstream trace;

static void Received(Ptr<const Packet> packet, const Address &from) {
    if (slow) {
        std::ofstream out("/tmp/ns3_trace.txt", std::ios::app);
        out << Simulator::Now().GetSeconds() << "\t" << packet->GetSize() << "\t" << from << "\n";
    } else {
        trace << Simulator::Now().GetSeconds() << "\t" << packet->GetSize() << "\t" << from << "\n";
    }
}

int main(int argc, char **argv) {
    slow = argc > 1 && !std::strcmp(argv[1], "slow");
    double seconds = argc > 2 ? std::atof(argv[2]) : 1e6;
    if (!slow) trace.open("/tmp/ns3_trace.txt");
    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper stack;
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), 9));
    source.SetConstantRate(DataRate("20Mbps"), 512);
    source.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    sink.Install(nodes.Get(1)).Start(Seconds(0));
    Config::ConnectWithoutContext("/NodeList/*/ApplicationList/*/$ns3::PacketSink/Rx", MakeCallback(&Received));
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Simulator::Destroy();
    std::remove("/tmp/ns3_trace.txt");
}
