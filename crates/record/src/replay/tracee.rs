//! A running process with hardware breakpoints, by `ptrace(2)`.
//!
//! The breakpoints are in the debug registers of its threads, so its code stays as it is. While a thread is at one, all
//! others are stopped too.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem::offset_of;
use std::thread;
use std::time::{Duration, Instant};

use stepscope_replay::{Registers, Source, Vectors};

use crate::proc;
use crate::process_log::ptrace::{self, call, read_registers};

/// How often changes of the threads are looked for.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// How long a thread may take to stop: it has to get a CPU first.
const LONGEST_STOP: Duration = Duration::from_secs(10);

/// After this time, a thread that has not stopped may have ended.
const LONG_STOP: Duration = Duration::from_millis(100);

/// A thread at a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub tid: u32,
    /// Number of the breakpoint.
    pub breakpoint: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// It gets this signal when it goes on; 0 is none.
    Stopped {
        signal: i32,
    },
}

/// A process whose threads this thread traces. All go on when it is dropped.
pub(super) struct Tracee {
    pid: u32,
    threads: BTreeMap<u32, State>,
    hits: VecDeque<Hit>,
    breakpoints: Vec<u64>,
}

impl Tracee {
    /// Sets breakpoints at these addresses in all threads, also those that will start.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn seize(pid: u32, breakpoints: &[u64]) -> io::Result<Self> {
        // It is not left with breakpoints that nobody answers.
        let options = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
        let mut tracee =
            Self { pid, threads: BTreeMap::new(), hits: VecDeque::new(), breakpoints: breakpoints.to_vec() };
        for tid in proc::threads(pid).map_err(|error| io::Error::other(error.to_string()))? {
            match call(libc::PTRACE_SEIZE, tid, 0, options as usize) {
                Ok(_) => drop(tracee.threads.insert(tid, State::Running)),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
        tracee.stop_all();
        let stopped: Vec<u32> = tracee.threads.keys().copied().collect();
        for tid in stopped {
            set_breakpoints(tid, &tracee.breakpoints)?;
        }
        tracee.go_on();
        Ok(tracee)
    }

    /// The next thread at a breakpoint, with all threads stopped. `None` if there was none within `wait`, or the process has ended.
    pub fn next(&mut self, wait: Duration) -> Option<Hit> {
        if let Some(hit) = self.hits.pop_front() {
            return Some(hit);
        }
        self.go_on();
        let begin = Instant::now();
        while self.hits.is_empty() && !self.threads.is_empty() && begin.elapsed() < wait {
            match look(None) {
                Some((tid, status)) => {
                    self.changed(tid, status);
                    if self.hits.is_empty() {
                        self.go_on();
                    }
                }
                None => thread::sleep(LOOK_EVERY),
            }
        }
        if self.hits.is_empty() {
            return None;
        }
        self.stop_all();
        self.hits.pop_front()
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.threads.is_empty()
    }

    /// Registers of a stopped thread.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn registers(&self, tid: u32) -> io::Result<Registers> {
        /// `NT_X86_XSTATE`
        const VECTORS: usize = 0x202;
        let user = read_registers(tid)?;
        let mut bytes = vec![0; 16384];
        let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        call(libc::PTRACE_GETREGSET, tid, VECTORS, &raw mut vector as usize)?;
        let vectors = Vectors::from_bytes(&bytes[..vector.iov_len]);
        Ok(Registers {
            general: general(&user),
            flags: user.eflags,
            ip: user.rip,
            fs: user.fs_base,
            gs: user.gs_base,
            vectors: vectors.ok_or_else(|| io::Error::other("unknown format of the vector registers"))?,
        })
    }

    /// The general registers of a stopped thread.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn general(&self, tid: u32) -> io::Result<[u64; 16]> {
        read_registers(tid).map(|user| general(&user))
    }

    /// Takes a breakpoint away. Only while all threads are stopped.
    pub fn remove(&mut self, breakpoint: usize) {
        self.breakpoints[breakpoint] = 0;
        self.hits.retain(|hit| hit.breakpoint != breakpoint);
        for tid in self.threads.keys() {
            let _ = set_breakpoints(*tid, &self.breakpoints);
        }
    }

    /// Stops all threads that run.
    fn stop_all(&mut self) {
        let running = |(tid, state): (&u32, &State)| (*state == State::Running).then_some(*tid);
        let running: Vec<u32> = self.threads.iter().filter_map(running).collect();
        for tid in &running {
            let _ = call(libc::PTRACE_INTERRUPT, *tid, 0, 0);
        }
        for tid in running {
            let begin = Instant::now();
            while self.threads.get(&tid) == Some(&State::Running) {
                match look(Some(tid)) {
                    Some((tid, status)) => self.changed(tid, status),
                    // The first thread of a process that has ended stays until its other threads have.
                    None if begin.elapsed() > LONG_STOP && self.has_ended_alone(tid)
                        || begin.elapsed() > LONGEST_STOP =>
                    {
                        self.threads.remove(&tid);
                    }
                    None => thread::sleep(LOOK_EVERY / 4),
                }
            }
        }
    }

    /// Whether a thread has ended, though its process has not.
    fn has_ended_alone(&self, tid: u32) -> bool {
        proc::thread_stat(self.pid, tid).map_or(true, |stat| stat.state.has_ended())
    }

    /// Lets all threads go on that are not at a breakpoint.
    fn go_on(&mut self) {
        for (tid, state) in &mut self.threads {
            if let State::Stopped { signal } = *state
                && !self.hits.iter().any(|hit| hit.tid == *tid)
            {
                let _ = call(libc::PTRACE_CONT, *tid, 0, signal as usize);
                *state = State::Running;
            }
        }
    }

    /// Records that a thread has stopped or ended.
    fn changed(&mut self, tid: u32, status: i32) {
        if !libc::WIFSTOPPED(status) {
            self.threads.remove(&tid);
            self.hits.retain(|hit| hit.tid != tid);
            return;
        }
        let is_event = status >> 16 != 0;
        let mut signal = if is_event { 0 } else { libc::WSTOPSIG(status) };
        if !self.threads.contains_key(&tid) {
            // It has just started.
            let _ = set_breakpoints(tid, &self.breakpoints);
        } else if signal == libc::SIGTRAP {
            let reached = debug_register(tid, STATUS) & 0b1111;
            let _ = set_debug_register(tid, STATUS, 0);
            if reached != 0 {
                signal = 0;
                let breakpoint = reached.trailing_zeros() as usize;
                if self.breakpoints.get(breakpoint).is_some_and(|address| *address != 0) {
                    self.hits.push_back(Hit { tid, breakpoint });
                }
            }
        }
        self.threads.insert(tid, State::Stopped { signal });
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        self.stop_all();
        for (tid, state) in &self.threads {
            let signal = if let State::Stopped { signal } = state { *signal } else { 0 };
            let _ = set_breakpoints(*tid, &[]);
            let _ = call(libc::PTRACE_DETACH, *tid, 0, signal as usize);
        }
    }
}

impl Source for Tracee {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        proc::read_memory(self.pid, address, into).is_ok_and(|read| read == into.len())
    }
}

/// In the order of their numbers in instructions.
fn general(user: &ptrace::Registers) -> [u64; 16] {
    let low = [user.rax, user.rcx, user.rdx, user.rbx, user.rsp, user.rbp, user.rsi, user.rdi];
    let high = [user.r8, user.r9, user.r10, user.r11, user.r12, user.r13, user.r14, user.r15];
    let mut all = [0; 16];
    all[..8].copy_from_slice(&low);
    all[8..].copy_from_slice(&high);
    all
}

/// The debug register that says which breakpoint was reached.
const STATUS: usize = 6;

/// The debug register that switches breakpoints on.
const CONTROL: usize = 7;

fn set_breakpoints(tid: u32, addresses: &[u64]) -> io::Result<()> {
    // The kernel does not take an address while its breakpoint is on.
    set_debug_register(tid, CONTROL, 0)?;
    let mut control = 0;
    for (number, address) in addresses.iter().enumerate().filter(|(_, address)| **address != 0) {
        set_debug_register(tid, number, *address)?;
        control |= 1 << (number * 2);
    }
    set_debug_register(tid, CONTROL, control)
}

fn place(register: usize) -> usize {
    offset_of!(libc::user, u_debugreg) + register * size_of::<u64>()
}

fn set_debug_register(tid: u32, register: usize, value: u64) -> io::Result<()> {
    call(libc::PTRACE_POKEUSER, tid, place(register), value as usize).map(drop)
}

fn debug_register(tid: u32, register: usize) -> u64 {
    let mut value: u64 = 0;
    // SAFETY: the system call (not the function of the C library) writes the register where the last argument points.
    let answer =
        unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_PEEKUSER, tid, place(register), &raw mut value) };
    if answer == -1 { 0 } else { value }
}

/// A thread of ours that has changed, and how, if there is one.
fn look(tid: Option<u32>) -> Option<(u32, i32)> {
    let mut status = 0;
    let which = tid.map_or(-1, |tid| tid as libc::pid_t);
    // SAFETY: the status outlives the call. Children of other threads are left to them.
    let found = unsafe { libc::waitpid(which, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
    u32::try_from(found).ok().filter(|tid| *tid != 0).map(|tid| (tid, status))
}
