//! Where a thread is blocked.

use std::io;

use super::files::Files;

/// The instruction and the stack pointer of a thread that is off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub instruction: u64,
    pub stack_pointer: u64,
}

impl Blocked {
    /// Of `/proc/PID/task/TID/syscall`: the number of a system call, its arguments, stack pointer and instruction; or `running`.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split_ascii_whitespace().rev();
        let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (instruction, stack_pointer) = (number()?, number()?);
        Some(Self { instruction, stack_pointer })
    }
}

/// Reads where threads are blocked, and their stacks, without stopping them.
#[derive(Debug, Default)]
pub(crate) struct BlockedReader {
    files: Files,
    stack: Vec<u8>,
}

impl BlockedReader {
    /// Where a thread is blocked, and up to `bytes` of its stack; `None` if it runs, or did meanwhile.
    ///
    /// # Errors
    /// If this user may not read that, or the thread has ended.
    pub fn read(&mut self, pid: u32, tid: u32, bytes: usize) -> io::Result<Option<(Blocked, &[u8])>> {
        let mut look = || Ok::<_, io::Error>(Blocked::parse(self.files.of_thread(pid, tid, "syscall")?));
        let Some(blocked) = look()? else { return Ok(None) };
        self.stack.resize(bytes, 0);
        let copied = super::read_memory(pid, blocked.stack_pointer, &mut self.stack)?;
        Ok((look()? == Some(blocked)).then_some((blocked, &self.stack[..copied])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_and_stack_pointer_are_the_last_words() {
        let parsed = |text: &str| Blocked::parse(text.as_bytes()).map(|one| (one.stack_pointer, one.instruction));
        assert_eq!(parsed("202 0x7f1 0x89 0x0 0x0 0x0 0x0 0x7ffd10 0x7f3a2b\n"), Some((0x7f_fd10, 0x7f_3a2b)));
        assert_eq!(parsed("-1 0x10 0x20\n"), Some((0x10, 0x20)), "a page fault");
        assert_eq!([parsed("running\n"), parsed(""), parsed("1 2"), parsed("0xzz 0x1")], [None; 4]);
    }

    #[test]
    fn a_sleeping_thread_is_blocked_above_its_stack_pointer() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: only asks for a number.
            sender.send(unsafe { libc::gettid() } as u32).unwrap();
            std::thread::park();
        });
        let (pid, tid) = (std::process::id(), receiver.recv().unwrap());
        let mut reader = BlockedReader::default();
        for _ in 0..1_000 {
            match reader.read(pid, tid, 4096) {
                Ok(Some((blocked, stack))) => {
                    assert!(blocked.instruction > 0 && !stack.is_empty());
                    break;
                }
                Ok(None) => std::thread::sleep(std::time::Duration::from_millis(1)),
                Err(error) => {
                    println!("skipped: a_sleeping_thread_is_blocked_above_its_stack_pointer: {error}");
                    break;
                }
            }
        }
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }
}
