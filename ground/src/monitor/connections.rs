//! The tables of connections in `/proc/<pid>/net`.
//!
//! They belong to a network namespace, so all processes that share one have the same tables.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use crate::account::{self, Counter};

/// Names of the tables.
const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];

/// Most attempts to read a table that does not show all known sockets.
const READS: usize = 100;

/// Sockets to count. Other sockets on the machine come and go.
pub struct Sockets {
    _tcp: Vec<TcpListener>,
    _udp: Vec<UdpSocket>,
    /// Local addresses by table, in its notation: `0100007F:1F90`.
    addresses: [Addresses; TABLES.len()],
}

/// Local addresses in the notation of the tables.
type Addresses = BTreeSet<String>;

impl Sockets {
    /// Opens sockets of each kind on free ports of the loopback interface.
    ///
    /// # Errors
    /// If the system has no free port or descriptor.
    pub fn open(of_each: usize) -> io::Result<Self> {
        let anywhere = (Ipv4Addr::LOCALHOST, 0);
        let tcp = (0..of_each).map(|_| TcpListener::bind(anywhere)).collect::<io::Result<Vec<_>>>()?;
        let udp = (0..of_each).map(|_| UdpSocket::bind(anywhere)).collect::<io::Result<Vec<_>>>()?;
        let of_tcp = addresses_of(tcp.iter().map(TcpListener::local_addr))?;
        let of_udp = addresses_of(udp.iter().map(UdpSocket::local_addr))?;
        Ok(Self { _tcp: tcp, _udp: udp, addresses: [of_tcp, Addresses::new(), of_udp, Addresses::new()] })
    }
}

fn addresses_of(bound: impl Iterator<Item = io::Result<SocketAddr>>) -> io::Result<Addresses> {
    bound.map(|address| Ok(address_in_table(address?))).collect()
}

/// The number of these addresses in a table, whose second column is the local address.
fn addresses_in(table: &str, addresses: &Addresses) -> usize {
    let local = table.lines().skip(1).filter_map(|row| row.split_ascii_whitespace().nth(1));
    local.filter(|address| addresses.contains(*address)).collect::<BTreeSet<_>>().len()
}

/// IPv4 addresses are numbers in the machine's byte order; ports are not.
fn address_in_table(address: SocketAddr) -> String {
    let number = match address.ip() {
        IpAddr::V4(ip) => u32::from_ne_bytes(ip.octets()),
        IpAddr::V6(_) => 0,
    };
    format!("{number:08X}:{:04X}", address.port())
}

/// Number of connections that a process sees, by table.
pub type Connections = [usize; TABLES.len()];

/// Counts the connections that a process sees.
///
/// # Errors
/// If its tables cannot be read, because there is no such process.
pub fn count_connections(pid: u32, sockets: &Sockets) -> io::Result<Connections> {
    let mut connections = Connections::default();
    for ((table, addresses), count) in TABLES.iter().zip(&sockets.addresses).zip(&mut connections) {
        *count = count_connections_in_file(&format!("/proc/{pid}/net/{table}"), addresses)?;
    }
    Ok(connections)
}

/// The kernel returns a table page by page and continues at a row number. If other programs open or close sockets
/// meanwhile, rows are missing or doubled, and the table is read again.
#[inline(never)]
fn count_connections_in_file(path: &str, addresses: &Addresses) -> io::Result<usize> {
    let _timed = account::scope("ground::monitor::connections::count_connections_in_file");
    let mut count = addresses_in(&read_file(path)?, addresses);
    for _ in 1..READS {
        if count == addresses.len() {
            break;
        }
        account::count(Counter::TablesReadAgain);
        count = addresses_in(&read_file(path)?, addresses);
    }
    Ok(count)
}

/// Reads a file of `/proc`.
///
/// # Errors
/// If it cannot be read.
pub fn read_file(path: &str) -> io::Result<String> {
    account::count(Counter::FileOpens);
    let mut file = File::open(path)?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        account::count(Counter::FileReads);
        match file.read(&mut buffer)? {
            0 => break,
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn known_sockets_are_in_the_tables_of_this_process_and_of_others() {
        let sockets = Sockets::open(3).unwrap();
        assert_eq!(count_connections(std::process::id(), &sockets).unwrap(), [3, 0, 3, 0]);
        // SAFETY: the call has no conditions.
        let parent = unsafe { libc::getppid() } as u32;
        assert_eq!(count_connections(parent, &sockets).unwrap(), [3, 0, 3, 0]);
    }

    #[test]
    fn sockets_are_found_though_others_come_and_go_while_tables_are_read() {
        let (sockets, ended) = (Sockets::open(3).unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    drop(Sockets::open(60));
                }
            });
            let seen = [0; 300].map(|_| count_connections(std::process::id(), &sockets).ok());
            ended.store(true, Ordering::Relaxed);
            assert_eq!(seen, [Some([3, 0, 3, 0]); 300]);
        });
    }

    #[test]
    fn a_row_matches_by_its_local_address_only() {
        let addresses = Addresses::from(["0100007F:1F90".to_owned()]);
        let table = "  sl  local_address rem_address\n   0: 0100007F:1F90 00000000:0000 0A\n   1: 0100007F:C000 0100007F:1F90 01\n";
        assert_eq!(addresses_in(table, &addresses), 1);
        assert_eq!(addresses_in(&table.repeat(2), &addresses), 1);
    }
}
