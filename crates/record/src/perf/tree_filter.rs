//! An in-kernel filter that lets only the recorded process tree pass, where the whole machine is observed.
//!
//! Stacks at every switch and wake-up of other programs would fill the rings, however idle the recorded program is.
//! Inherited events of single threads keep those out too, but at a price: each start and end of a thread copies them, and a
//! switch between processes replaces one set of events on the CPU by another. Looking up the current process in a table
//! takes some 50 ns:
//!
//! - *Switches*: a BPF program decides before a sample of the event is written, and drops those of other processes.
//! - *Wake-ups*: a program that is attached to the perf event of a tracepoint acts on the events of all recorders. So a
//!   program of its own at the tracepoint writes the waker's stack through a dedicated event, with the id of the woken
//!   thread. The record without a stack, from the ordinary event, comes first; the id joins the two.
//! - *Forks*: a child of a member becomes a member before it runs, whenever the recorder learns about it.
//!
//! Ids are those of the first pid namespace. There is no filter in other namespaces, where the recorder sees other ids, nor
//! without CAP_BPF, nor on kernels that do not describe their types.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use perf_event_open_sys::ioctls;
use stepscope_assemble::system_call::{Sum, TimeCount};

use super::assembly::unless_member_leave;
use super::bpf::{self, CONTEXT, Function, Instruction, Map, Program, RESULT, STACK};
use super::btf;
use super::switch_sums::{SwitchSums, TaskOffsets};
use super::system_calls::SystemCalls;

/// Processes in the table. The recorder adds the living ones again and again.
const MEMBERS: u32 = 16 << 10;
/// The first pid namespace has this inode on every kernel (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Offset of the woken thread's id in the raw data of a record with a waker's stack.
pub(crate) const WOKEN_AT: usize = 4;

/// The BPF programs, and the table of members that they read.
pub(super) struct TreeFilter {
    members: OwnedFd,
    /// Drops samples of other processes.
    guard: OwnedFd,
    _forks: OwnedFd,
    /// The program that writes wakers' stacks, and the events that it writes through.
    _wakers: Option<[OwnedFd; 2]>,
    system_calls: Option<SystemCalls>,
    switch_sums: Option<SwitchSums>,
    /// Offsets in the kernel's `task_struct`: of a thread's id, of its process' id, of the address of its stack.
    tid_at: u32,
    pid_at: u32,
    kernel_stack_at: u32,
}

impl TreeFilter {
    /// Loads a filter that lets no process pass yet. Leaves nothing behind if that fails.
    pub fn open() -> io::Result<Self> {
        if fs::read_link("/proc/self/ns/pid")?.as_os_str() != FIRST_PID_NAMESPACE {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let members = bpf::create_map(Map::RecentlyUsed, MEMBERS)?;
        let guard = bpf::load(Program::PerfEvent, &pass_members(members.as_fd()))?;
        let fields = ["pid", "tgid", "stack"];
        let [tid_at, pid_at, kernel_stack_at] = btf::Kernel::read()?.offsets_of("task_struct", fields)?;
        let forks = bpf::load(Program::RawTracepoint, &admit_children(members.as_fd(), pid_at))?;
        let forks = bpf::attach(c"sched_process_fork", forks.as_fd())?;
        Ok(Self {
            members,
            guard,
            _forks: forks,
            _wakers: None,
            system_calls: None,
            switch_sums: None,
            tid_at,
            pid_at,
            kernel_stack_at,
        })
    }

    /// Lets a process pass, and the processes that it starts from now on.
    pub fn admit(&self, pid: u32) -> io::Result<()> {
        bpf::set_element(self.members.as_fd(), pid, 1)
    }

    /// Filters the samples of an event. Events of tracepoints cannot be filtered this way.
    pub fn guard(&self, event: RawFd) -> io::Result<()> {
        // SAFETY: both are open; the kernel checks what they are.
        let result = unsafe { ioctls::SET_BPF(event, self.guard.as_raw_fd() as u32) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Records the switches and wake-ups of members through these events of the CPU: without a stack, or with one.
    pub fn write_switches(&mut self, outputs: &[(u32, [RawFd; 2])]) -> io::Result<()> {
        if self.pid_at != self.tid_at + 4 {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let offset = |at: u32| i16::try_from(at).map_err(|_| io::Error::from(io::ErrorKind::Unsupported));
        let task = TaskOffsets { ids_at: offset(self.tid_at)?, stack_at: offset(self.kernel_stack_at)? };
        self.switch_sums = Some(SwitchSums::open(self.members.as_fd(), outputs, task)?);
        Ok(())
    }

    /// What records switches, if the filter does.
    pub fn switch_sums(&self) -> Option<&SwitchSums> {
        self.switch_sums.as_ref()
    }

    /// Adds up the system calls of members from now on.
    pub fn add_up_calls(&mut self, outputs: &[(u32, RawFd)], plain: &[(u32, RawFd)]) -> io::Result<()> {
        self.system_calls = Some(SystemCalls::attach(self.members.as_fd(), outputs, plain)?);
        Ok(())
    }

    /// The sums of system calls so far.
    pub fn system_call_sums(&self) -> Vec<Sum> {
        self.system_calls.as_ref().map_or_else(Vec::new, SystemCalls::sums)
    }

    /// The times of system calls so far.
    pub fn system_call_times(&self) -> Vec<TimeCount> {
        self.system_calls.as_ref().map_or_else(Vec::new, SystemCalls::times)
    }

    /// Writes a record through the event of the current CPU whenever a member wakes a thread.
    ///
    /// The ordinary event of the same tracepoint must be open already, so that its record comes first.
    pub fn write_wakers(&mut self, outputs: &[(u32, RawFd)]) -> io::Result<()> {
        let events = bpf::output_map(outputs)?;
        let program = write_waker(self.members.as_fd(), events.as_fd(), self.tid_at);
        let program = bpf::load(Program::RawTracepoint, &program)?;
        self._wakers = Some([bpf::attach(c"sched_waking", program.as_fd())?, events]);
        Ok(())
    }
}

fn pass_members(members: BorrowedFd<'_>) -> Vec<Instruction> {
    let mut program = unless_member_leave(members);
    program.extend([Instruction::set(RESULT, 1), Instruction::exit()]);
    program
}

/// Copies 32 bits of a task, which is an argument of the tracepoint, to the stack at -4.
fn read_of_task(argument: i16, offset: u32) -> [Instruction; 6] {
    [
        Instruction::load(3, CONTEXT, argument * 8),
        Instruction::add(3, offset as i32),
        Instruction::copy(1, STACK),
        Instruction::add(1, -4),
        Instruction::set(2, 4),
        Instruction::call(Function::ProbeReadKernel),
    ]
}

/// For `sched_process_fork(parent, child)`, in the parent: makes the child's process a member.
fn admit_children(members: BorrowedFd<'_>, pid_at: u32) -> Vec<Instruction> {
    let mut program = unless_member_leave(members);
    program.extend(read_of_task(1, pid_at));
    program.push(Instruction::store_number(STACK, -8, 1));
    program.extend(Instruction::map(1, members));
    program.extend([
        Instruction::copy(2, STACK),
        Instruction::add(2, -4),
        Instruction::copy(3, STACK),
        Instruction::add(3, -8),
        Instruction::set(4, 0),
        Instruction::call(Function::MapUpdate),
        Instruction::set(RESULT, 0),
        Instruction::exit(),
    ]);
    program
}

/// For `sched_waking(woken)`, in the waker: writes a record whose raw data are a zero and the woken thread's id.
fn write_waker(members: BorrowedFd<'_>, events: BorrowedFd<'_>, tid_at: u32) -> Vec<Instruction> {
    const CURRENT_CPU: u32 = u32::MAX;
    let mut program = unless_member_leave(members);
    program.extend(read_of_task(0, tid_at));
    program.extend([Instruction::store_number(STACK, -8, 0), Instruction::copy(1, CONTEXT)]);
    program.extend(Instruction::map(2, events));
    program.extend([
        Instruction::set_u32(3, CURRENT_CPU),
        Instruction::copy(4, STACK),
        Instruction::add(4, -8),
        Instruction::set(5, 8),
        Instruction::call(Function::PerfEventOutput),
        Instruction::set(RESULT, 0),
        Instruction::exit(),
    ]);
    program
}
