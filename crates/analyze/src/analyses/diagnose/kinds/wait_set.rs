//! A wait set is built again at each wake-up.
//!
//! Evidence: the kernel's work for each descriptor of a wait set (`epoll_ctl`, and in `poll` and `select` what is done per
//! descriptor), or that of ROS 2 and CycloneDDS for each entity of theirs, costs in all parts of the steady phase. A wait
//! set that stays costs when it is made. Look-alikes: an event loop with few descriptors, which costs little; connections
//! that come and go.

use stepscope_model::StackId;

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, is_of_kernel, parts};
use crate::query::qualified_name::own_name;

/// Least share of CPU time.
const LEAST: f64 = 10.0;

/// Functions of the kernel that change a set.
const CHANGES: [&str; 4] = ["__x64_sys_epoll_ctl", "__arm64_sys_epoll_ctl", "do_epoll_ctl", "__se_sys_epoll_ctl"];

/// Functions of the kernel that take a whole set with each call.
const TAKES: [&str; 4] = ["do_sys_poll", "core_sys_select", "do_poll", "do_select"];

/// What these do for each descriptor.
const PER_DESCRIPTOR: [&str; 12] = [
    "fdget",
    "__fdget",
    "__fget_light",
    "__pollwait",
    "poll_freewait",
    "add_wait_queue",
    "remove_wait_queue",
    "eventfd_poll",
    "sock_poll",
    "pipe_poll",
    "timerfd_poll",
    "fput",
];

/// Beginnings of functions of middleware that put an entity into a wait set.
const MIDDLEWARE: [&str; 6] = [
    "rcl_wait_set_add_",
    "rcl_wait_set_clear",
    "rcl_wait_set_resize",
    "dds_waitset_attach",
    "dds_waitset_detach",
    "epoll_ctl",
];

pub(super) struct WaitSet;

impl Kind for WaitSet {
    fn name(&self) -> &'static str {
        "wait-set-rebuilt"
    }

    fn advice(&self) -> &'static str {
        "Keep the wait set, and change it when something is added or removed; let an event say who is ready (`epoll`, an events executor)."
    }

    fn confirm(&self) -> &'static str {
        "Count the calls per wake-up: `strace -f -c -e trace=epoll_ctl,epoll_wait,poll,ppoll`."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["allocations-each-step"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let changes = seen.paths_through(|function| {
            let own = own_name(&function.name);
            let by_name = MIDDLEWARE.iter().any(|start| own.starts_with(start));
            is_of_kernel(function, &CHANGES) || (!function.owned && by_name)
        });
        let takes = seen.paths_through(|function| is_of_kernel(function, &TAKES));
        let for_each = seen.paths_through(|function| is_of_kernel(function, &PER_DESCRIPTOR));
        let at = |stack: StackId| changes[stack.index()] || (takes[stack.index()] && for_each[stack.index()]);
        let amount = seen.sum(at);
        let Some(function) = seen.common_owner(at) else { return Vec::new() };
        if seen.share(amount) < LEAST || !seen.is_steady(at) {
            return Vec::new();
        }
        let title = format!("`{}` builds its wait set again at each wake-up", seen.name(function));
        let without = parts((0..changes.len()).map(|index| at(StackId::from_index(index))));
        let text = format!(
            "Adding, removing and asking descriptors or entities takes {} of the CPU time, all the time.",
            percent(seen.share(amount))
        );
        vec![Found::of(seen, function, title, without).sure(Confidence::Fair).because(text, explain(seen, function))]
    }
}
