//! A network of devices that send packets from queues and write records, like ns-3.
//!
//! In a step, packets arrive at the queues of all devices, dropped packets are counted, each device sends as many packets
//! as its limits allow, and some devices write a record.

mod attributes;
mod device;
mod queue_disc;
mod record_files;

use std::fmt::Write;
use std::io;

use clap::Args;

use crate::account;
use crate::folder::TemporaryFolder;
use crate::random::StateHash;
use crate::simulation::Simulation;
use crate::switches::{Switch, Switches};
use attributes::{AttributeValue, REGULAR_WIFI_MAC};
use device::Device;
use queue_disc::{Drop, LookUp, Packet, QueueDisc, count_drops};
use record_files::{Openness, RecordFiles};

/// Simulated time of a step, s.
const STEP_S: f64 = 0.001;
/// Airtime of a CTS-to-self frame, which keeps other devices silent, s.
const CTS_TO_SELF_S: f64 = 60e-6;
/// Steps after which the files start again, because a run may be endless.
const STEPS_PER_FILE: u64 = 20_000;

/// Options of this world.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(next_help_heading = "Options of world `stats`")]
pub struct Options {
    /// Number of records written per step
    #[arg(long, default_value_t = 20)]
    records: u32,
}

/// Creates the world with `size` devices.
///
/// # Errors
/// If its files cannot be created.
pub fn load(size: u32, options: &Options, switches: &Switches) -> io::Result<Box<dyn Simulation>> {
    Ok(Box::new(Network::new(size, options, switches)?))
}

/// Limits of one transmission of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    bytes: u64,
    packets: u64,
    seconds: f64,
}

impl Device {
    /// Reads the limits from attributes. Frames are aggregated only with QoS.
    fn limits(&self) -> Limits {
        let number = |name| match REGULAR_WIFI_MAC.get_attribute(self, name) {
            Some(AttributeValue::Uinteger(number)) => number,
            _ => 0,
        };
        let real = |name| match REGULAR_WIFI_MAC.get_attribute(self, name) {
            Some(AttributeValue::DataRate(value) | AttributeValue::Time(value)) => value,
            _ => 0.0,
        };
        let has = |name| number(name) != 0;
        let bytes = if has("QosSupported") { number("BE_MaxAmpduSize") } else { 0 };
        let protection_s = if has("CtsToSelfSupported") { CTS_TO_SELF_S } else { 0.0 };
        let seconds = bytes as f64 * 8.0 / real("DataRate").max(1.0) + real("GuardInterval") + protection_s;
        Limits { bytes, packets: number("MaxPackets"), seconds }
    }
}

struct Network {
    devices: Vec<Device>,
    queues: Vec<QueueDisc>,
    /// Limits of each device.
    limits: Vec<Limits>,
    /// Packets dropped in this step.
    dropped: Vec<Drop>,
    records: Vec<String>,
    files: RecordFiles,
    folder: TemporaryFolder,
    switches: Switches,
    recorded: StateHash,
}

impl Network {
    fn new(size: u32, options: &Options, switches: &Switches) -> io::Result<Self> {
        let devices: Vec<_> = (0..size).map(Device::new).collect();
        let folder = TemporaryFolder::new("stats")?;
        let openness = if switches.is_slow(Switch::Reopen) { Openness::Reopened } else { Openness::KeptOpen };
        Ok(Self {
            queues: devices.iter().map(|_| QueueDisc::default()).collect(),
            limits: devices.iter().map(Device::limits).collect(),
            devices,
            dropped: Vec::new(),
            records: vec![String::new(); options.records as usize],
            files: RecordFiles::create(folder.path(), openness)?,
            folder,
            switches: switches.clone(),
            recorded: StateHash::default(),
        })
    }

    /// Adds arriving packets to the queues.
    #[inline(never)]
    fn enqueue(&mut self, step: u64) {
        let _timed = account::scope("ground::stats::Network::enqueue");
        self.dropped.clear();
        for (number, device) in self.devices.iter_mut().enumerate() {
            let bits = device.random.next_bits();
            for packet in 0..bits % 4 {
                let packet = Packet { size: 64 + (bits >> (8 + 11 * packet)) as u32 % 1400, arrived: step };
                let limit = self.limits[number].packets as usize;
                if let Err(reason) = self.queues[number].enqueue(packet, limit) {
                    self.dropped.push(Drop { queue: number, reason, size: packet.size });
                }
            }
        }
    }

    /// Reads the limits of each device; the fast code did that when the device was created.
    #[inline(never)]
    fn resolve_limits(&mut self) {
        let _timed = account::scope("ground::stats::Network::resolve_limits");
        if self.switches.is_slow(Switch::AttrLookup) {
            self.limits.clear();
            self.limits.extend(self.devices.iter().map(Device::limits));
        }
    }

    /// Sends as many packets of each device as its limits and the channel allow.
    #[inline(never)]
    fn transmit(&mut self) {
        let _timed = account::scope("ground::stats::Network::transmit");
        for ((device, queue), limits) in self.devices.iter_mut().zip(&mut self.queues).zip(&self.limits) {
            let fading = device.random.next_unit().max(1e-9).ln() * 3.0;
            device.sinr_db = 22.0 + fading;
            device.airtime_s += limits.seconds;
            let taken = (limits.bytes as f64 * (1.0 + device.sinr_db / 40.0)).max(0.0) as u64;
            let mut bytes = 0;
            while let Some(packet) = queue.packets.front()
                && (bytes == 0 || bytes + u64::from(packet.size) <= taken)
            {
                bytes += u64::from(packet.size);
                device.sent_packets += 1;
                queue.packets.pop_front();
            }
            device.sent_bytes += bytes;
        }
    }

    /// Writes the records of this step, one device after the other.
    fn record(&mut self, step: u64) {
        if self.devices.is_empty() {
            return;
        }
        let first = step * self.records.len() as u64;
        for (number, record) in self.records.iter_mut().enumerate() {
            let cell = (first + number as u64) % self.devices.len() as u64;
            let (device, queue) = (&self.devices[cell as usize], &self.queues[cell as usize]);
            record.clear();
            let time_s = step as f64 * STEP_S;
            let (waiting, packets, sinr) = (queue.packets.len(), device.sent_packets, device.sinr_db);
            let bytes = device.sent_bytes;
            writeln!(record, "{time_s:.3}\t{cell}\t{waiting}\t{packets}\t{bytes}\t{sinr:.4}")
                .expect("a String takes all");
            record.bytes().for_each(|byte| self.recorded.add(u64::from(byte)));
        }
    }
}

impl Simulation for Network {
    fn name(&self) -> String {
        format!("stats_{}", self.devices.len())
    }

    fn step(&mut self, step: u64) {
        self.enqueue(step);
        let look_up = if self.switches.is_slow(Switch::StringTemp) { LookUp::ByString } else { LookUp::Borrowed };
        count_drops(&mut self.queues, &self.dropped, look_up);
        self.resolve_limits();
        self.transmit();
        self.record(step);
        let opened = if step.is_multiple_of(STEPS_PER_FILE) { self.files.restart() } else { Ok(()) };
        opened.and_then(|()| self.files.write_stats(&self.records)).expect("the temporary folder can be written");
    }

    fn step_s(&self) -> f64 {
        STEP_S
    }

    fn state_hash(&self) -> u64 {
        let mut hash = self.recorded;
        for (device, queue) in self.devices.iter().zip(&self.queues) {
            hash.add(device.sent_bytes);
            hash.add(device.sinr_db.to_bits());
            hash.add(device.airtime_s.to_bits());
            queue.packets.iter().for_each(|packet| hash.add(u64::from(packet.size)));
            for (reason, packets, bytes) in queue.dropped() {
                hash.add(packets ^ (reason.len() as u64) << 32);
                hash.add(bytes);
            }
        }
        hash.get()
    }

    fn close(&mut self) {
        if let Err(error) = self.files.complete() {
            eprintln!("ground: records were lost: {error}");
        }
        self.folder.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::pathology::World;

    fn state_after(steps: u64, size: u32, switches: &Switches) -> u64 {
        let mut world = load(size, &Options { records: 7 }, switches).unwrap();
        (0..steps).for_each(|step| world.step(step));
        world.close();
        world.state_hash()
    }

    #[test]
    fn every_switch_gives_the_same_records_and_queues_at_every_size() {
        for size in [0, 1, 30, 400] {
            let fast = state_after(60, size, &Switches::default());
            for pathology in crate::catalogue::pathologies().filter(|one| one.world == World::Stats) {
                let slow = state_after(60, size, &Switches::only(pathology.switch));
                assert_eq!(slow, fast, "{} with {size} devices", pathology.name());
            }
            assert_eq!(state_after(60, size, &Switches::all()), fast, "all with {size} devices");
        }
        assert_ne!(state_after(59, 30, &Switches::default()), state_after(60, 30, &Switches::default()));
    }

    #[test]
    fn packets_are_dropped_for_each_reason() {
        let mut network = Network::new(50, &Options { records: 1 }, &Switches::default()).unwrap();
        (0..200).for_each(|step| network.step(step));
        let mut reasons: Vec<_> = network.queues.iter().flat_map(|queue| queue.dropped().map(|drop| drop.0)).collect();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons, [queue_disc::LIMIT_EXCEEDED, queue_disc::OVER_TARGET, queue_disc::UNCLASSIFIED]);
    }

    #[test]
    fn limits_come_from_attributes() {
        let device = Device::new(0);
        assert_eq!(device.limits(), Limits { bytes: 400, packets: 8, seconds: 400.0 * 8.0 / 5e6 + 0.8e-6 });
    }
}
