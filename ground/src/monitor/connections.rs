//! The tables of connections that the kernel shows below `/proc/<pid>/net`.
//!
//! They are those of the process's network namespace: the same for all processes that share one.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use crate::account::{self, Counter};

/// Names of the tables.
const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];

/// Sockets that are there to be counted: others on the machine come and go.
pub struct Sockets {
    _tcp: Vec<TcpListener>,
    _udp: Vec<UdpSocket>,
    /// As the tables have them, `0100007F:1F90`, in order.
    addresses: Vec<String>,
}

impl Sockets {
    /// Opens so many of each kind at free ports of the loopback interface.
    ///
    /// # Errors
    /// If the system has none to give.
    pub fn open(of_each: usize) -> io::Result<Self> {
        let anywhere = (Ipv4Addr::LOCALHOST, 0);
        let tcp = (0..of_each).map(|_| TcpListener::bind(anywhere)).collect::<io::Result<Vec<_>>>()?;
        let udp = (0..of_each).map(|_| UdpSocket::bind(anywhere)).collect::<io::Result<Vec<_>>>()?;
        let bound = tcp.iter().map(TcpListener::local_addr).chain(udp.iter().map(UdpSocket::local_addr));
        let mut addresses = bound.map(|address| Ok(address_in_table(address?))).collect::<io::Result<Vec<_>>>()?;
        addresses.sort_unstable();
        Ok(Self { _tcp: tcp, _udp: udp, addresses })
    }

    /// How many of a table's rows are of these sockets: the second column is the local address.
    fn rows_of(&self, table: &str) -> usize {
        let local = table.lines().skip(1).filter_map(|row| row.split_ascii_whitespace().nth(1));
        local.filter(|address| self.addresses.binary_search_by(|own| own.as_str().cmp(address)).is_ok()).count()
    }
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
    for (table, count) in TABLES.iter().zip(&mut connections) {
        *count = count_connections_in_file(&format!("/proc/{pid}/net/{table}"), sockets)?;
    }
    Ok(connections)
}

#[inline(never)]
fn count_connections_in_file(path: &str, sockets: &Sockets) -> io::Result<usize> {
    let _timed = account::scope("ground::monitor::connections::count_connections_in_file");
    Ok(sockets.rows_of(&read_file(path)?))
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
    fn a_row_is_known_by_its_local_address_and_not_by_its_remote_one() {
        let addresses = vec!["0100007F:1F90".to_owned()];
        let sockets = Sockets { _tcp: Vec::new(), _udp: Vec::new(), addresses };
        let table = "  sl  local_address rem_address\n   0: 0100007F:1F90 00000000:0000 0A\n   1: 0100007F:C000 0100007F:1F90 01\n";
        assert_eq!(sockets.rows_of(table), 1);
    }
}
