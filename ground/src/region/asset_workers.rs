//! Threads that wait for uploads of assets, which never come: idle threads that are no defect.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Threads that sleep in `poll` until this is dropped.
pub struct AssetWorkers {
    uploads: Vec<UnixStream>,
    threads: Vec<JoinHandle<()>>,
}

impl AssetWorkers {
    /// Starts threads.
    ///
    /// # Errors
    /// If there are too many for the system.
    pub fn start(number: u32) -> io::Result<Self> {
        let mut workers = Self { uploads: Vec::new(), threads: Vec::new() };
        for _ in 0..number {
            let (uploads, work) = UnixStream::pair()?;
            let thread = std::thread::Builder::new().name("assets".into()).stack_size(128 << 10);
            workers.threads.push(thread.spawn(move || wait_for_uploads(work))?);
            workers.uploads.push(uploads);
        }
        Ok(workers)
    }
}

impl Drop for AssetWorkers {
    fn drop(&mut self) {
        self.uploads.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[inline(never)]
fn wait_for_uploads(mut work: UnixStream) {
    let mut asset = [0; 4096];
    loop {
        let mut polled = libc::pollfd { fd: work.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one pollfd that lives through the call.
        let ready = unsafe { libc::poll(&mut polled, 1, -1) };
        if ready > 0 && matches!(work.read(&mut asset), Ok(0) | Err(_)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_wait_until_uploads_are_closed() {
        let mut workers = AssetWorkers::start(3).unwrap();
        assert!(workers.threads.iter().all(|thread| !thread.is_finished()));
        workers.uploads.clear();
        workers.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}
