//! Rows of the table `syscalls`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{StackId, Stored, SystemCalls, ThreadId};

/// Calls with a row of their own.
const MOST_ROWS: usize = 1 << 20;

/// A call that returned.
pub(super) struct Call {
    pub thread: ThreadId,
    pub name: Arc<str>,
    pub file: Option<Arc<str>>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub duration_ns: Option<u64>,
    pub has_failed: bool,
    pub bytes: u64,
}

/// Which calls are added up.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    thread: ThreadId,
    name: Arc<str>,
    file: Option<Arc<str>>,
    stack: Option<StackId>,
}

impl Key {
    fn of(row: &SystemCalls) -> Self {
        Self { thread: row.thread, name: row.call.clone(), file: row.file.clone(), stack: row.stack }
    }
}

/// Adds calls as rows.
#[derive(Default)]
pub(super) struct Rows {
    /// The last row of each key, once there are too many rows.
    last: FxHashMap<Key, usize>,
    added_up: u64,
}

impl Rows {
    pub fn add(&mut self, call: Call, stack: Option<StackId>, rows: &mut Stored<SystemCalls>) {
        let duration_ns = call.duration_ns.unwrap_or(0);
        let row = SystemCalls {
            start_ns: call.start_ns,
            end_ns: call.end_ns,
            thread: call.thread,
            call: call.name,
            stack,
            file: call.file,
            count: 1,
            errors: u64::from(call.has_failed),
            total_ns: duration_ns,
            longest_ns: duration_ns,
            bytes: call.bytes,
            last_ns: call.duration_ns,
        };
        if rows.len() < MOST_ROWS {
            rows.push(row);
            return;
        }
        if self.last.is_empty() {
            self.last = rows.iter().enumerate().map(|(index, row)| (Key::of(row), index)).collect();
        }
        match self.last.get(&Key::of(&row)) {
            Some(&index) => {
                self.added_up += 1;
                add(&mut rows[index], row);
            }
            None => {
                self.last.insert(Key::of(&row), rows.len());
                rows.push(row);
            }
        }
    }

    /// What the rows do not have.
    pub fn remark(&self) -> Option<String> {
        let many = self.added_up;
        (many > 0).then(|| format!("{many} calls beyond the first million have no row of their own."))
    }
}

fn add(sum: &mut SystemCalls, row: SystemCalls) {
    sum.end_ns = sum.end_ns.max(row.end_ns);
    sum.count += row.count;
    sum.errors += row.errors;
    sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
    sum.longest_ns = sum.longest_ns.max(row.longest_ns);
    sum.bytes = sum.bytes.saturating_add(row.bytes);
    sum.last_ns = row.last_ns;
}

/// Whether a call returns how many bytes it read or wrote.
pub(super) fn moves_bytes(name: &str) -> bool {
    matches!(
        name,
        "read"
            | "write"
            | "pread64"
            | "pwrite64"
            | "readv"
            | "writev"
            | "preadv"
            | "pwritev"
            | "preadv2"
            | "pwritev2"
            | "recvfrom"
            | "sendto"
            | "recvmsg"
            | "sendmsg"
            | "sendfile"
            | "splice"
            | "copy_file_range"
            | "getdents"
            | "getdents64"
    )
}
