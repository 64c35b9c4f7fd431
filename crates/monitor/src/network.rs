//! Network namespaces: traffic of interfaces, and sockets. Each is read once for all processes in it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::readings::Readings;
use crate::text::{fields, lines, number, number_of, read_whole};

/// Inode of our own namespace.
pub fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/net").ok().map(|namespace| namespace.ino())
}

/// Reads a namespace through a process in it. `suffix` tells it from our own.
pub fn read(pid: u32, suffix: &str, readings: &mut Readings, buffer: &mut Vec<u8>) {
    if let Ok(text) = read_whole(format!("/proc/{pid}/net/dev"), buffer) {
        parse_interfaces(text, suffix, readings);
    }
    let mut sockets = [0_i64; 2];
    let mut is_known = false;
    for (file, keys) in
        [("sockstat", [&b"TCP: inuse"[..], b"UDP: inuse"]), ("sockstat6", [b"TCP6: inuse", b"UDP6: inuse"])]
    {
        let Ok(text) = read_whole(format!("/proc/{pid}/net/{file}"), buffer) else { continue };
        for (count, key) in sockets.iter_mut().zip(keys) {
            *count += number_of(text, key).unwrap_or(0);
        }
        is_known = true;
    }
    if is_known {
        readings.add("net_tcp_sockets", suffix, sockets[0]);
        readings.add("net_udp_sockets", suffix, sockets[1]);
    }
    if let Ok(text) = read_whole(format!("/proc/{pid}/net/snmp"), buffer) {
        readings.add_some("net_udp_overflows", suffix, udp_overflows(text));
    }
}

/// `/proc/net/dev`: bytes and drops of each interface.
fn parse_interfaces(text: &[u8], suffix: &str, readings: &mut Readings) {
    for line in lines(text) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let Ok(name) = std::str::from_utf8(line[..colon].trim_ascii()) else { continue };
        let mut counts = [0_i64; 12];
        for (count, field) in counts.iter_mut().zip(fields(&line[colon + 1..])) {
            *count = number(field).unwrap_or(0);
        }
        let instance = format!("{name}{suffix}");
        readings.add("net_received_bytes", &instance, counts[0]);
        readings.add("net_sent_bytes", &instance, counts[8]);
        readings.add("net_dropped_packets", &instance, counts[3].saturating_add(counts[11]));
    }
}

/// `RcvbufErrors` of `/proc/net/snmp`, whose names and values are in two lines.
fn udp_overflows(text: &[u8]) -> Option<i64> {
    let mut udp = lines(text).filter(|line| line.starts_with(b"Udp:"));
    let (names, values) = (udp.next()?, udp.next()?);
    let column = fields(names).position(|name| name == b"RcvbufErrors")?;
    number(fields(values).nth(column)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_read_by_interface_and_distinguished_from_that_of_other_namespaces() {
        let text =
            b"Inter-|   Receive    |  Transmit\n face |bytes packets\n    lo: 100 2 0 1 0 0 0 0 200 3 0 4 0 0 0 0\n";
        let mut readings = Readings::default();
        parse_interfaces(text, "@7", &mut readings);
        let read: Vec<(String, i64)> = readings.iter().map(|(name, value)| (name.to_string(), value)).collect();
        let expected =
            [("net_received_bytes:lo@7", 100), ("net_sent_bytes:lo@7", 200), ("net_dropped_packets:lo@7", 5)];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn udp_overflows_are_found_by_the_name_of_their_column() {
        let text = b"Tcp: RcvbufErrors\nTcp: 9\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 1 2 3 4 55\n";
        assert_eq!(udp_overflows(text), Some(55));
        assert_eq!(udp_overflows(b"Udp: InDatagrams\n"), None);
    }

    #[test]
    fn our_own_namespace_has_the_loopback_interface() {
        let mut readings = Readings::default();
        read(std::process::id(), "", &mut readings, &mut Vec::new());
        assert!(readings.iter().any(|(name, _)| &**name == "net_received_bytes:lo"));
        assert!(own_namespace().is_some());
    }
}
