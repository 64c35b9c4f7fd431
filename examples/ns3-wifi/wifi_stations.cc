// N stations that send UDP to one 802.11ax access point as fast as the channel takes it.
//
//   wifi_stations N [STEPS]
//
// A step is 10 ms of simulated time. STEPS of 0 (the default) runs until SIGINT or SIGTERM. Prints
// `wifi_stations: ready` after the first 100 ms, when the stations are associated.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include "stepscope.h"

using namespace ns3;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 9;
const Time kStep = MilliSeconds(10);
constexpr std::uint64_t kAssociationSteps = 10;

volatile std::sig_atomic_t stopped = 0;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Ptr<PacketSink> build(std::uint32_t n) {
  NodeContainer stations, access_point;
  stations.Create(n);
  access_point.Create(1);

  YansWifiPhyHelper phy;
  phy.SetChannel(YansWifiChannelHelper::Default().Create());
  WifiHelper wifi;
  wifi.SetStandard(WIFI_STANDARD_80211ax);
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("HeMcs7"), "ControlMode",
                               StringValue("HeMcs0"));
  WifiMacHelper mac;
  const Ssid ssid("stepscope");
  mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid));
  const NetDeviceContainer station_devices = wifi.Install(phy, mac, stations);
  mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid));
  const NetDeviceContainer access_point_device = wifi.Install(phy, mac, access_point);

  MobilityHelper mobility;
  mobility.SetPositionAllocator("ns3::UniformDiscPositionAllocator", "rho", DoubleValue(10.0));
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  mobility.Install(stations);
  mobility.Install(access_point);

  InternetStackHelper internet;
  internet.Install(stations);
  internet.Install(access_point);
  Ipv4AddressHelper addresses;
  addresses.SetBase("10.1.0.0", "255.255.0.0");
  addresses.Assign(station_devices);
  const Ipv4InterfaceContainer interface = addresses.Assign(access_point_device);

  PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
  const ApplicationContainer sinks = sink.Install(access_point);
  // Together the stations offer more than the channel carries.
  OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(interface.GetAddress(0), kPort));
  source.SetConstantRate(DataRate("100Mb/s"), 1400);
  source.Install(stations).Start(kStep * kAssociationSteps);
  return DynamicCast<PacketSink>(sinks.Get(0));
}

}  // namespace

volatile std::uint64_t steps_done = 0;

// Simulates 10 ms. The step is marked, with its simulated time, for `step = "marks"`; and `step = { function = ... }` may
// name this function. Counting here, after the calls, keeps it on the stack during the step, and lets it begin with a
// push, at which a probe costs a tenth of what it costs elsewhere.
extern "C" __attribute__((noinline)) void wifi_stations_step(std::uint64_t step) {
  STEPSCOPE_STEP_NS(Simulator::Now().GetNanoSeconds());
  STEPSCOPE_SCOPE("Simulator::Run");
  Simulator::Stop(kStep);
  Simulator::Run();
  steps_done = step + 1;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (n <= 0) {
    std::fprintf(stderr, "usage: wifi_stations N [STEPS]\n");
    return 2;
  }
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stopped = 1; });

  const auto began = Clock::now();
  const Ptr<PacketSink> sink = build(static_cast<std::uint32_t>(n));
  std::uint64_t step = 0;
  for (; step < kAssociationSteps && !stopped; ++step) wifi_stations_step(step);
  std::printf("wifi_stations: ready n=%d load_s=%.3f\n", n, seconds_since(began));
  std::fflush(stdout);

  const auto running = Clock::now();
  const double from = Simulator::Now().GetSeconds();
  for (; (steps == 0 || step < steps) && !stopped; ++step) wifi_stations_step(step);
  const double wall = seconds_since(running);
  std::printf("wifi_stations: done steps=%llu wall_s=%.3f rtf=%.3f received_mb=%.1f\n",
              static_cast<unsigned long long>(step), wall, (Simulator::Now().GetSeconds() - from) / wall,
              sink->GetTotalRx() / 1e6);
  Simulator::Destroy();
}
