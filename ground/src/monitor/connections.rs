//! The tables of connections that the kernel shows below `/proc/<pid>/net`.
//!
//! They are those of the process's network namespace: the same for all processes that share one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use crate::account::{self, Counter};

/// Names of the tables.
const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];

/// How often a table is read that does not show all that is there.
const READS: usize = 100;

/// Sockets that are there to be counted: others on the machine come and go.
pub struct Sockets {
    _tcp: Vec<TcpListener>,
    _udp: Vec<UdpSocket>,
    /// By table: local addresses as it has them, `0100007F:1F90`.
    addresses: [Addresses; TABLES.len()],
}

/// Local addresses as the tables have them.
type Addresses = BTreeSet<String>;

impl Sockets {
    /// Opens so many of each kind at free ports of the loopback interface.
    ///
    /// # Errors
    /// If the system has none to give.
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

/// How many of these addresses are in a table: its second column is the local one.
fn addresses_in(table: &str, addresses: &Addresses) -> usize {
    let local = table.lines().skip(1).filter_map(|row| row.split_ascii_whitespace().nth(1));
    local.filter(|address| addresses.contains(*address)).collect::<BTreeSet<_>>().len()
}

/// Addresses of version 4 are a number in the machine's byte order there; the ports are not.
fn address_in_table(address: SocketAddr) -> String {
    let number = match address.ip() {
        IpAddr::V4(ip) => u32::from_ne_bytes(ip.octets()),
        IpAddr::V6(_) => 0,
    };
    format!("{number:08X}:{:04X}", address.port())
}

/// How many connections a process sees, by table.
pub type Connections = [usize; TABLES.len()];

/// Counts the connections that a process sees.
///
/// # Errors
/// If its tables cannot be read: there is no such process.
pub fn count_connections(pid: u32, sockets: &Sockets) -> io::Result<Connections> {
    let mut connections = Connections::default();
    for ((table, addresses), count) in TABLES.iter().zip(&sockets.addresses).zip(&mut connections) {
        *count = count_connections_in_file(&format!("/proc/{pid}/net/{table}"), addresses)?;
    }
    Ok(connections)
}

/// The kernel gives a table a page at a time and goes on by the number of the row, so rows are there twice or not at all
/// where other programs opened or closed sockets meanwhile: then it is read again.
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

/// The text of a file of the kernel's.
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
    fn own_sockets_are_found_in_the_tables_of_this_process_and_of_others() {
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
    fn a_row_is_known_by_its_local_address_and_not_by_its_remote_one() {
        let addresses = Addresses::from(["0100007F:1F90".to_owned()]);
        let table = "  sl  local_address rem_address\n   0: 0100007F:1F90 00000000:0000 0A\n   1: 0100007F:C000 0100007F:1F90 01\n";
        assert_eq!(addresses_in(table, &addresses), 1);
        assert_eq!(addresses_in(&table.repeat(2), &addresses), 1);
    }
}
