//! `ptrace(2)`: tasks that stop when they fork, execute a program and exit, and at nothing else.

use std::io;

use crate::clock;

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// What happened to a task. It is stopped until [`resume`], unless it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It made a task with this id, which is traced too.
    Forked { new: u32 },
    /// It executes another program. Before, the task had this id: another one if it was not the first thread.
    Executed { before: u32 },
    /// It is about to exit; all that it used can still be read.
    Exits,
    /// It begins, or was stopped for another reason that needs no answer.
    Stopped,
    /// A signal stopped its group; [`listen`] keeps it stopped until the next signal.
    GroupStopped,
    /// It is about to receive this signal.
    Signalled { signal: i32 },
    /// It is gone, with this exit code, or 128 + signal, and the CPU time of its process until the very end.
    Ended { status: i32, cpu_ns: Option<u64> },
}

/// Follows a task and all that it will start. All calls about a task must come from the thread that called this.
pub(super) fn seize(pid: u32) -> io::Result<()> {
    call(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize).map(drop)
}

/// Lets a task go on, and gives it a signal unless this is 0. A task that was killed meanwhile is no error.
pub(super) fn resume(tid: u32, signal: i32) {
    let _ = call(libc::PTRACE_CONT, tid, 0, signal as usize);
}

/// Leaves a task stopped, but lets it receive SIGCONT.
pub(super) fn listen(tid: u32) {
    let _ = call(libc::PTRACE_LISTEN, tid, 0, 0);
}

/// Waits for the next change of any task that this thread follows. `None` if none is left.
pub(super) fn next() -> io::Result<Option<(u32, Change)>> {
    // Children of other threads are left to them.
    let any = libc::WEXITED | libc::WSTOPPED | libc::__WALL | libc::__WNOTHREAD;
    loop {
        // SAFETY: all zeros is a valid structure, and it outlives the call, as the status below.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // The task is left as it is: what it used can be read until its parent knows of its end.
        if unsafe { libc::waitid(libc::P_ALL, 0, &mut found, any | libc::WNOWAIT) } == 0 {
            // SAFETY: the call filled the structure as for SIGCHLD.
            let tid = unsafe { found.si_pid() };
            let has_ended = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&found.si_code);
            let cpu_ns = if has_ended { clock::cpu_ns_of(tid as u32) } else { None };
            let mut status = 0;
            // SAFETY: see above.
            if unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::__WNOTHREAD) } == tid {
                return Ok(Some((tid as u32, change(tid as u32, status, cpu_ns))));
            }
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

fn change(tid: u32, status: i32, cpu_ns: Option<u64>) -> Change {
    if libc::WIFEXITED(status) {
        return Change::Ended { status: libc::WEXITSTATUS(status), cpu_ns };
    }
    if libc::WIFSIGNALED(status) {
        return Change::Ended { status: 128 + libc::WTERMSIG(status), cpu_ns };
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 => Change::Signalled { signal },
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Change::Forked { new: message(tid) }
        }
        libc::PTRACE_EVENT_EXEC => Change::Executed { before: message(tid) },
        libc::PTRACE_EVENT_EXIT => Change::Exits,
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Change::GroupStopped,
        _ => Change::Stopped,
    }
}

/// The number that comes with an event; 0 if the task was killed meanwhile.
fn message(tid: u32) -> u32 {
    let mut message: libc::c_ulong = 0;
    match call(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize) {
        Ok(_) => u32::try_from(message).unwrap_or(0),
        Err(_) => 0,
    }
}

/// The type of requests in C, which differs.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// One request about a task. Where it writes memory of ours, `data` is its address.
pub(crate) fn call(request: Request, tid: u32, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: what a request writes outlives the call, as callers see to.
    let answer = unsafe { libc::ptrace(request, tid as libc::pid_t, address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The general registers of a task.
pub(crate) type Registers = libc::user_regs_struct;

/// The general registers of a stopped task.
///
/// # Errors
/// If it has ended, or is of a program of 32 bits.
pub(crate) fn read_registers(tid: u32) -> io::Result<Registers> {
    // SAFETY: all zeros is a valid structure.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    transfer(libc::PTRACE_GETREGSET as _, tid, &mut registers)?;
    Ok(registers)
}

/// Changes the general registers of a stopped task.
pub(super) fn write_registers(tid: u32, registers: &mut Registers) -> io::Result<()> {
    transfer(libc::PTRACE_SETREGSET as _, tid, registers)
}

fn transfer(request: Request, tid: u32, registers: &mut Registers) -> io::Result<()> {
    const GENERAL: usize = libc::NT_PRSTATUS as usize;
    let size = size_of::<Registers>();
    // The vector is the structure, with its size, which a program of 32 bits fills only in part.
    let mut data = libc::iovec { iov_base: std::ptr::from_mut(registers).cast(), iov_len: size };
    call(request, tid, GENERAL, &raw mut data as usize)?;
    // A program of 32 bits has another layout.
    if data.iov_len == size { Ok(()) } else { Err(io::Error::from(io::ErrorKind::Unsupported)) }
}
