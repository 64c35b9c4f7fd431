//! [`Work`]: what the code below an owned function does for it: allocates, opens files, decodes images.
//!
//! The evidence is in the frames between a stack's leaf and its nearest owned function: the system call in the kernel's
//! frames, else the [family](Family) of the library's functions. Names of the program itself do not count, so a program
//! with renamed functions gets the same answers.

use stepscope_model::{FrameKind, StackId};

use crate::query::family::Family;
use crate::query::frame_kind::kernel_name;
use crate::query::functions::Functions;
use crate::query::qualified_name::{enclosing, own_name};
use crate::query::select::Selection;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// The owned function itself, or code of no known kind.
    Own,
    /// Allocation and release of memory.
    Allocation,
    /// A container that grows or is built.
    ContainerGrowth,
    /// Memory of a container that grows.
    GrowthMemory,
    /// A look-up in a map or a set, with its hashes and comparisons.
    LookUp,
    /// A search in a list from its start, with its comparisons: `std::find`, `Iterator::any`.
    Search,
    /// Any other work of a standard container: iteration, access.
    Container,
    /// Comparison of texts, or of memory byte by byte, outside of maps and searches.
    Comparison,
    /// Strings: creation, comparison.
    Text,
    /// Conversion of values to text and from it: streams, `printf`, parsers of numbers.
    Formatting,
    /// Copies and fills of memory.
    Copy,
    /// Locks and condition variables.
    Lock,
    /// The dynamic linker.
    Linking,
    /// What Stepscope itself does in the program.
    Recording,
    /// Decoding of images and decompression.
    Decoding,
    /// Opening and closing files.
    OpenFile,
    /// Reading files.
    ReadFile,
    /// Writing and seeking files.
    WriteFile,
    /// Listing directories.
    ListFiles,
    /// Asking for the state of files.
    FileState,
    /// Files of `/proc` and `/sys`: the kernel makes their content.
    KernelFile,
    /// Sending to sockets.
    Send,
    /// Receiving from sockets.
    Receive,
    /// Waiting for descriptors: `poll`, `epoll_wait`, `select`.
    Poll,
    /// Starting and ending threads and processes.
    Thread,
    /// Faults in memory.
    PageFault,
    /// Reading a clock.
    Clock,
    /// Switching to another thread, and waking one.
    Switch,
    /// Other work of the kernel.
    Kernel,
}

impl Work {
    /// The work of each node of a capture's call tree, below the node's nearest owned function.
    pub fn of_stacks(selection: &Selection<'_>) -> Vec<Work> {
        let (capture, functions) = (selection.capture(), selection.functions());
        let kinds: Vec<Frame> = functions.all().map(|(id, _)| Frame::of(functions, id)).collect();
        let mut states: Vec<Below> = Vec::with_capacity(capture.stacks.len());
        for index in 0..capture.stacks.len() {
            let id = functions.of_node(capture, StackId::from_index(index));
            let caller = capture.stacks[index].parent.map_or(Below::default(), |parent| states[parent.index()]);
            states.push(match functions.is_owner(id) {
                // What a search asks of each element is part of it.
                true if caller.searches() && enclosing(&functions.get(id).name).is_some() => caller,
                true => Below::default(),
                false => caller.then(kinds[id.index()]),
            });
        }
        states.into_iter().map(Below::work).collect()
    }
}

/// What the name of a function that is not owned says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// Library code of a kind; `keeps` what it calls.
    Library {
        work: Work,
        keeps: bool,
    },
    /// A function of the kernel that shows which work it does.
    Kernel(Work),
    /// The kernel's files in `/proc` and `/sys`, whichever call reads them.
    KernelFile,
    /// A function of the kernel that shows nothing.
    InKernel,
    Unknown,
}

impl Frame {
    fn of(functions: &Functions, id: crate::query::functions::FunctionId) -> Self {
        let function = functions.get(id);
        let own = own_name(&function.name);
        if function.kind == FrameKind::Kernel {
            let name = kernel_name(&own);
            return match () {
                () if begins(name, KERNEL_FILES) => Self::KernelFile,
                () => of_kernel_function(name).map_or(Self::InKernel, Self::Kernel),
            };
        }
        if function.module.contains("vdso") {
            return Self::Library { work: Work::Clock, keeps: true };
        }
        let Some(family) = functions.family(id) else { return Self::Unknown };
        let work = match family {
            Family::Group(_) | Family::Mathematics | Family::Kernel | Family::Library(_) => return Self::Unknown,
            Family::Recording => Work::Recording,
            Family::DynamicLinking => Work::Linking,
            Family::ImageDecoding | Family::Decompression => Work::Decoding,
            Family::Locks => Work::Lock,
            Family::Allocation => Work::Allocation,
            Family::MemoryCopies => Work::Copy,
            Family::TextFormatting => Work::Formatting,
            Family::Strings => Work::Text,
            Family::Containers if grows(&own) => Work::ContainerGrowth,
            Family::Containers if searches(&own) => Work::Search,
            Family::Containers if looks_up(&own) => Work::LookUp,
            Family::Containers => Work::Container,
        };
        let work = match work {
            Work::Copy | Work::Text | Work::Container if compares(&own) => Work::Comparison,
            _ => work,
        };
        Self::Library { work, keeps: family.keeps_callees() }
    }
}

/// A stack from its owned function down.
#[derive(Debug, Clone, Copy, Default)]
struct Below {
    library: Option<(Work, bool)>,
    in_kernel: bool,
    kernel: Option<Work>,
}

impl Below {
    /// The same, with one more frame below.
    fn then(self, frame: Frame) -> Self {
        match frame {
            Frame::Unknown => self,
            Frame::InKernel => Self { in_kernel: true, ..self },
            Frame::KernelFile => Self { in_kernel: true, kernel: Some(Work::KernelFile), ..self },
            // The system call, which comes first, says more than the functions that it calls; a fault is apart.
            Frame::Kernel(work) => Self {
                in_kernel: true,
                kernel: Some(match self.kernel {
                    Some(known) if work != Work::PageFault => known,
                    _ => work,
                }),
                ..self
            },
            Frame::Library { .. } if matches!(self.library, Some((_, true))) => self,
            Frame::Library { work, keeps } => {
                // A container that grows allocates: both are the growth.
                let work = match self.library.map(|(work, _)| work) {
                    Some(Work::ContainerGrowth | Work::GrowthMemory) if work == Work::Allocation => Work::GrowthMemory,
                    Some(outer @ (Work::ContainerGrowth | Work::GrowthMemory)) if is_part_of_growth(work) => outer,
                    Some(outer @ (Work::LookUp | Work::Search)) if is_part_of_search(work) => outer,
                    _ => work,
                };
                Self { library: Some((work, keeps)), ..self }
            }
        }
    }

    fn searches(self) -> bool {
        matches!(self.library, Some((Work::Search, _)))
    }

    fn work(self) -> Work {
        match (self.library, self.kernel, self.in_kernel) {
            // The kernel's part of an allocation is allocation, that of the linker is linking, that of the recorder is recording.
            (
                Some((
                    work @ (Work::Allocation
                    | Work::ContainerGrowth
                    | Work::GrowthMemory
                    | Work::Linking
                    | Work::Recording
                    | Work::Decoding),
                    _,
                )),
                _,
                true,
            ) => work,
            (_, Some(work), true) => work,
            (Some((Work::Lock, _)), None, true) => Work::Lock,
            (_, None, true) => Work::Kernel,
            (Some((work, _)), ..) => work,
            (None, ..) => Work::Own,
        }
    }
}

/// Whether a container's function adds elements or makes room for them.
fn grows(own: &str) -> bool {
    const PARTS: [&str; 20] = [
        "insert",
        "emplace",
        "push_back",
        "push_front",
        "::push",
        "reserve",
        "rehash",
        "realloc",
        "resize",
        "grow",
        "_create_node",
        "_get_node",
        "_M_assign",
        "_M_copy",
        "::clone",
        "from_iter",
        "::extend",
        "_M_erase",
        "::drop",
        "_M_default_append",
    ];
    PARTS.iter().any(|part| own.contains(part))
}

/// The last part of a name, without leading underscores.
fn last_part(own: &str) -> &str {
    own.rsplit("::").next().unwrap_or(own).trim_start_matches('_')
}

/// Whether a function of the standard library searches a sequence from its start.
fn searches(own: &str) -> bool {
    const OF_CPP: [&str; 8] =
        ["find", "find_if", "find_if_not", "find_first_of", "any_of", "none_of", "adjacent_find", "search"];
    const OF_RUST: [&str; 6] = ["any", "position", "rposition", "find", "find_map", "contains"];
    const SEQUENCES: [&str; 4] =
        ["core::slice::", "core::iter::", "alloc::collections::vec_deque", "alloc::collections::linked_list"];
    let last = last_part(own);
    let is_algorithm = own.starts_with("std::") && own.matches("::").count() == 1;
    (is_algorithm && OF_CPP.contains(&last)) || (begins(own, &SEQUENCES) && OF_RUST.contains(&last))
}

/// Whether a function of a map or a set looks for a key, or makes a hash of one.
fn looks_up(own: &str) -> bool {
    const MAPS: [&str; 12] = [
        "map::",
        "set::",
        "Map::",
        "Set::",
        "_map",
        "_set",
        "hash",
        "Hash",
        "_Rb_tree",
        "btree::",
        "robin_hood::",
        "RawTable",
    ];
    const VERBS: [&str; 22] = [
        "get",
        "get_mut",
        "get_inner",
        "get_key_value",
        "entry",
        "find",
        "find_inner",
        "contains",
        "contains_key",
        "count",
        "at",
        "operator[]",
        "lower_bound",
        "M_lower_bound",
        "upper_bound",
        "M_upper_bound",
        "equal_range",
        "M_find_node",
        "M_find_before_node",
        "M_get_insert_unique_pos",
        "search_tree",
        "search_node",
    ];
    const HASHES: [&str; 5] = ["core::hash", "std::hash::", "std::hash", "std::_Hash_bytes", "std::_Hash_impl"];
    begins(own, &HASHES) || (MAPS.iter().any(|map| own.contains(map)) && VERBS.contains(&last_part(own)))
}

/// Whether a library's function compares texts, or memory.
fn compares(own: &str) -> bool {
    const OF_C: [&str; 7] = ["memcmp", "bcmp", "wmemcmp", "strcmp", "strncmp", "strcasecmp", "strncasecmp"];
    const METHODS: [&str; 8] = ["eq", "ne", "cmp", "partial_cmp", "equal", "compare", "operator==", "operator<"];
    if own.contains("::") {
        return METHODS.contains(&last_part(own));
    }
    begins(crate::query::frame_kind::undecorated(own), &OF_C)
}

/// What a container that grows does, too.
fn is_part_of_growth(work: Work) -> bool {
    matches!(work, Work::Copy | Work::Container | Work::ContainerGrowth | Work::LookUp | Work::Comparison)
}

/// What a search and a look-up do for each element they meet.
fn is_part_of_search(work: Work) -> bool {
    matches!(work, Work::Copy | Work::Container | Work::LookUp | Work::Search | Work::Comparison | Work::Text)
}

fn begins(name: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}

/// Functions that make the content of files in `/proc` and `/sys`.
const KERNEL_FILES: &[&str] = &[
    "proc_",
    "seq_read",
    "kernfs_",
    "sysfs_",
    "do_task_stat",
    "tcp4_seq_",
    "tcp6_seq_",
    "tcp_seq_",
    "udp_seq_",
    "tid_fd_",
    "m_show",
];

/// The work that a function of the kernel shows: an entry of a system call, or what only one call leads to.
fn of_kernel_function(name: &str) -> Option<Work> {
    #[rustfmt::skip]
    const CALLS: &[(Work, &[&str])] = &[
        (Work::OpenFile, &["open", "openat", "openat2", "creat", "close"]),
        (Work::ReadFile, &["read", "pread64", "readv", "preadv", "readahead"]),
        (Work::WriteFile, &["write", "pwrite64", "writev", "pwritev", "lseek", "fsync", "fdatasync", "ftruncate"]),
        (Work::ListFiles, &["getdents", "getdents64"]),
        (Work::FileState, &[
            "stat", "lstat", "newstat", "newlstat", "newfstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
            "readlink", "readlinkat",
        ]),
        (Work::Send, &["sendto", "sendmsg", "sendmmsg"]),
        (Work::Receive, &["recvfrom", "recvmsg", "recvmmsg"]),
        (Work::Poll, &["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"]),
        (Work::Thread, &["clone", "clone3", "fork", "vfork", "exit", "exit_group", "execve"]),
        (Work::Clock, &["clock_gettime", "gettimeofday"]),
        (Work::Switch, &["futex", "sched_yield", "nanosleep", "clock_nanosleep"]),
    ];
    #[rustfmt::skip]
    const FUNCTIONS: &[(Work, &[&str])] = &[
        (Work::PageFault, &["asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "do_page_fault", "el0_da", "do_mem_abort"]),
        (Work::OpenFile, &["do_sys_openat2", "do_filp_open", "____fput", "__fput"]),
        (Work::ReadFile, &["ksys_read", "vfs_read"]),
        (Work::WriteFile, &["ksys_write", "vfs_write"]),
        (Work::ListFiles, &["iterate_dir"]),
        (Work::FileState, &["vfs_statx", "vfs_fstatat"]),
        (Work::Send, &["__sys_sendto", "__sys_sendmsg"]),
        (Work::Receive, &["__sys_recvfrom", "__sys_recvmsg"]),
        (Work::Poll, &["do_sys_poll", "do_epoll_wait"]),
        (Work::Switch, &["do_futex", "__schedule", "schedule"]),
    ];
    let call = ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "__ia32_sys_"]
        .iter()
        .find_map(|start| name.strip_prefix(start));
    match call {
        Some(call) => CALLS.iter().find(|(_, calls)| calls.contains(&call)).map(|(work, _)| *work),
        None => FUNCTIONS.iter().find(|(_, names)| names.contains(&name)).map(|(work, _)| *work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;

    /// The work at the leaf of a stack, root first.
    fn work(stack: &str) -> Work {
        let capture = drawn::folded(&format!("main;{stack} 1"));
        drawn::selected(&capture, &["sim::"], |selection| {
            *Work::of_stacks(selection).last().expect("the stack has frames")
        })
    }

    #[test]
    fn the_system_call_decides_and_not_what_it_calls() {
        let open = "sim::Save;open64;entry_SYSCALL_64 [kernel];__x64_sys_openat [kernel]";
        assert_eq!(work(open), Work::OpenFile);
        assert_eq!(work(&format!("{open};vfs_read [kernel]")), Work::OpenFile);
        assert_eq!(
            work(
                "sim::Save;stepscope_python_preload::add_stub [lib:/tmp/stepscope-python-1-a.so];__x64_sys_write [kernel]"
            ),
            Work::Recording
        );
        assert_eq!(work("sim::Save;write;__x64_sys_write [kernel];ext4_file_write_iter [kernel]"), Work::WriteFile);
        assert_eq!(work("sim::Watch;read;__x64_sys_read [kernel];seq_read_iter [kernel]"), Work::KernelFile);
        assert_eq!(work("sim::Watch;read;something_else [kernel]"), Work::Kernel);
    }

    #[test]
    fn a_fault_is_apart_unless_an_allocator_has_it() {
        assert_eq!(work("sim::Fill;asm_exc_page_fault [kernel];clear_page [kernel]"), Work::PageFault);
        assert_eq!(work("sim::Fill;malloc;sysmalloc;asm_exc_page_fault [kernel]"), Work::Allocation);
        assert_eq!(work("sim::Send;sendto;__x64_sys_sendto [kernel];asm_exc_page_fault [kernel]"), Work::PageFault);
    }

    #[test]
    fn a_container_that_grows_includes_its_allocations_and_an_owned_callee_starts_anew() {
        assert_eq!(work("sim::Build;std::map<int, int>::insert"), Work::ContainerGrowth);
        assert_eq!(work("sim::Build;std::map<int, int>::insert;operator new;malloc"), Work::GrowthMemory);
        assert_eq!(work("sim::Find;std::map<int, int>::find"), Work::LookUp);
        assert_eq!(work("sim::Find;malloc"), Work::Allocation);
        assert_eq!(work("sim::Build;std::map<int, int>::insert;sim::Less"), Work::Own);
        assert_eq!(work("sim::Load;inflate_fast;malloc"), Work::Decoding);
    }

    #[test]
    fn a_comparison_belongs_to_the_search_or_look_up_around_it() {
        let find = "sim::Find;std::find<int*, int>";
        assert_eq!(work(find), Work::Search);
        assert_eq!(work(&format!("{find};memcmp")), Work::Search);
        assert_eq!(work("sim::Find;core::slice::contains"), Work::Search);
        assert_eq!(work("sim::Find;<core::slice::iter::Iter<T> as core::iter::Iterator>::any"), Work::Search);
        assert_eq!(work("sim::Find;std::map<std::string, int>::find;memcmp"), Work::LookUp);
        assert_eq!(
            work("sim::Find;std::collections::hash::map::HashMap<K, V>::get;core::hash::Hash::hash"),
            Work::LookUp
        );
        assert_eq!(work("sim::Find;std::find_if<int*>;sim::Find::{lambda(int)#1}::operator();memcmp"), Work::Search);
        assert_eq!(
            work("sim::Find;std::for_each<int*>;sim::Find::{lambda(int)#1}::operator();memcmp"),
            Work::Comparison
        );
        assert_eq!(work("sim::Find;__memcmp_avx2_movbe"), Work::Comparison);
        assert_eq!(work("sim::Find;std::vector<int>::operator[]"), Work::Container, "access is no look-up");
        assert_eq!(work("sim::Draw;<core::slice::iter::Iter<T> as core::iter::Iterator>::next"), Work::Container);
    }
}
