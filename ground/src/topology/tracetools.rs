//! What a topology reports: marks of Stepscope, or calls of ROS 2's library `tracetools`, in the order of rclcpp, rcl and
//! rmw. The functions are those of a file (ROS 2's library, or the stand-in `ground/tracetools/tracetools.c`), or this program's
//! own, which do nothing.

use std::ffi::{CString, OsStr, c_char};

use std::sync::atomic::AtomicBool;

use libloading::Library;
use stepscope_marks::Site;

use super::message::Message;

/// The address of an object of ROS 2. Only its value matters.
pub type Handle = usize;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// The functions of `tracetools.h`, of Jazzy and later.
        pub struct Tracetools {
            $($name: unsafe extern "C" fn($($argument),*),)*
            /// From this machine's monotonic clock to real time, which source timestamps have.
            to_real_ns: i64,
        }

        /// The functions, for observers of their calls. As a tracepoint of LTTng, each reads a variable of its own that a tracer would
        /// set, so that no two share their code.
        mod own {
            use super::*;

            $(
                #[unsafe(export_name = concat!("ros_trace_", stringify!($name)))]
                pub unsafe extern "C" fn $name($(_: $argument),*) {
                    static IS_TRACED: AtomicBool = AtomicBool::new(false);
                    // SAFETY: the address is that of a variable that lives for ever. A read that is not volatile would be left out.
                    if unsafe { IS_TRACED.as_ptr().read_volatile() } {
                        std::hint::black_box(());
                    }
                }
            )*
        }

        impl Tracetools {
            /// The functions of this program.
            pub fn own() -> &'static Self {
                Box::leak(Box::new(Self { $($name: own::$name,)* to_real_ns: to_real_ns() }))
            }

            fn of(library: &'static Library) -> Result<Self, libloading::Error> {
                // SAFETY: functions of these names have these arguments in all libraries of this interface.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!("ros_trace_", stringify!($name)))?,)*
                        to_real_ns: to_real_ns(),
                    })
                }
            }
        }
    };
}

functions! {
    rcl_node_init: fn(Handle, Handle, *const c_char, *const c_char);
    rcl_publisher_init: fn(Handle, Handle, *const RmwHandle, *const c_char, usize);
    rcl_subscription_init: fn(Handle, Handle, *const RmwHandle, *const c_char, usize);
    rclcpp_subscription_init: fn(Handle, Handle);
    rclcpp_subscription_callback_added: fn(Handle, Handle);
    rcl_service_init: fn(Handle, Handle, Handle, *const c_char);
    rclcpp_service_callback_added: fn(Handle, Handle);
    rcl_timer_init: fn(Handle, i64);
    rclcpp_timer_callback_added: fn(Handle, Handle);
    rclcpp_timer_link_node: fn(Handle, Handle);
    rclcpp_publish: fn(Handle, *const Message);
    rclcpp_intra_publish: fn(Handle, *const Message);
    rcl_publish: fn(Handle, *const Message);
    rmw_publish: fn(*const RmwHandle, *const Message, i64);
    rmw_take: fn(*const RmwHandle, *const Message, i64, bool);
    rclcpp_ring_buffer_enqueue: fn(Handle, u64, u64, bool);
    rclcpp_ring_buffer_dequeue: fn(Handle, u64, u64);
    callback_start: fn(Handle, bool);
    callback_end: fn(Handle);
}

/// The fields that `rmw_publisher_t` and `rmw_subscription_t` begin with (`rmw/types.h`).
#[repr(C)]
pub struct RmwHandle {
    /// The address of a text.
    implementation_identifier: usize,
    data: usize,
    /// The address of a text.
    topic_name: usize,
}

impl std::fmt::Debug for Tracetools {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Tracetools")
    }
}

impl Tracetools {
    /// Loads the library, which stays loaded.
    ///
    /// # Errors
    /// If it cannot be loaded, or lacks a function.
    pub fn load(file: &OsStr) -> Result<&'static Self, libloading::Error> {
        // SAFETY: the library's functions of this kind begin and end nothing when they are loaded.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(file)? }));
        Ok(Box::leak(Box::new(Self::of(library)?)))
    }

    /// A message was put into the buffer of a subscription.
    pub fn enqueued(&self, buffer: Handle, index: u64, size: usize, is_overwritten: bool) {
        // SAFETY: only numbers.
        unsafe { (self.rclcpp_ring_buffer_enqueue)(buffer, index, size as u64, is_overwritten) };
    }

    /// A message was taken from the buffer of a subscription.
    pub fn dequeued(&self, buffer: Handle, index: u64, size: usize) {
        // SAFETY: only numbers.
        unsafe { (self.rclcpp_ring_buffer_dequeue)(buffer, index, size as u64) };
    }
}

/// How messages leave and enter the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By pointer.
    Within,
    /// As bytes.
    Transport,
}

/// How the nodes of a topology report messages and callbacks.
#[derive(Debug, Clone, Copy)]
pub struct Instrumentation {
    /// The library; `None` for marks.
    pub tracetools: Option<&'static Tracetools>,
    /// How messages travel.
    pub way: Way,
}

/// What a publisher tells.
pub struct Publication {
    site: &'static Site,
    way: Way,
    tracetools: Option<(&'static Tracetools, Handle, &'static RmwHandle)>,
}

/// What a subscription, a service or a client tells.
pub struct Reception {
    site: &'static Site,
    way: Way,
    tracetools: Option<(&'static Tracetools, Option<Handle>, &'static RmwHandle)>,
}

/// What a timer tells.
pub struct Due(Option<(&'static Tracetools, Handle)>);

impl Instrumentation {
    /// A node was made.
    pub fn node(&self, name: &str) -> Handle {
        let (node, name) = (new_handle(), text(name));
        if let Some(hooks) = self.tracetools {
            // SAFETY: the texts live for ever.
            unsafe { (hooks.rcl_node_init)(node, new_handle(), name, text("/")) };
        }
        node
    }

    /// A publisher of a topic was made, or a sender of requests or responses.
    pub fn publisher(&self, node: Handle, topic: &str) -> Publication {
        let tracetools = self.tracetools.map(|hooks| {
            let (handle, rmw) = (new_handle(), new_rmw_handle(topic));
            // SAFETY: handles and texts live for ever.
            unsafe { (hooks.rcl_publisher_init)(handle, node, rmw, rmw.topic_name as *const c_char, 10) };
            (hooks, handle, rmw)
        });
        Publication { site: site(topic), way: self.way, tracetools }
    }

    /// What marks of a topic are made of; ROS 2's services tell nothing of messages.
    pub fn unpublished(&self, topic: &str) -> Option<Publication> {
        self.tracetools.is_none().then(|| Publication { site: site(topic), way: self.way, tracetools: None })
    }

    /// A subscription was made.
    pub fn subscription(&self, node: Handle, topic: &str) -> Reception {
        let tracetools = self.tracetools.map(|hooks| {
            let (handle, object, callback) = (new_handle(), new_handle(), new_handle());
            let rmw = new_rmw_handle(topic);
            // SAFETY: handles and texts live for ever.
            unsafe {
                (hooks.rcl_subscription_init)(handle, node, rmw, rmw.topic_name as *const c_char, 10);
                (hooks.rclcpp_subscription_init)(handle, object);
                (hooks.rclcpp_subscription_callback_added)(object, callback);
            }
            (hooks, Some(callback), rmw)
        });
        Reception { site: site(topic), way: self.way, tracetools }
    }

    /// A service was made.
    pub fn service(&self, node: Handle, service: &str, topic: &str) -> Reception {
        let tracetools = self.tracetools.map(|hooks| {
            let (handle, callback, rmw) = (new_handle(), new_handle(), new_rmw_handle(service));
            // SAFETY: handles and texts live for ever.
            unsafe {
                (hooks.rcl_service_init)(handle, node, new_handle(), rmw.topic_name as *const c_char);
                (hooks.rclcpp_service_callback_added)(handle, callback);
            }
            (hooks, Some(callback), rmw)
        });
        Reception { site: site(topic), way: Way::Within, tracetools }
    }

    /// A client was made. rclcpp tells nothing of its callbacks.
    pub fn client(&self, topic: &str) -> Reception {
        let tracetools = self.tracetools.map(|hooks| (hooks, None, new_rmw_handle(topic)));
        Reception { site: site(topic), way: Way::Within, tracetools }
    }

    /// A timer was made.
    pub fn timer(&self, node: Handle, period_ns: u64) -> Due {
        Due(self.tracetools.map(|hooks| {
            let (handle, callback) = (new_handle(), new_handle());
            // SAFETY: only numbers.
            unsafe {
                (hooks.rcl_timer_init)(handle, period_ns as i64);
                (hooks.rclcpp_timer_callback_added)(handle, callback);
                (hooks.rclcpp_timer_link_node)(handle, node);
            }
            (hooks, callback)
        }))
    }
}

impl Publication {
    /// Tells that a message is published, just before it is.
    pub fn tell(&self, message: &Message) {
        let Some((hooks, handle, rmw)) = self.tracetools else {
            return stepscope_marks::flow_begin(self.site, id(message));
        };
        let stamp_ns = hooks.real_ns(message);
        // SAFETY: the addresses are those of living objects, and nothing is read through them.
        unsafe {
            match self.way {
                Way::Within => (hooks.rclcpp_intra_publish)(handle, message),
                Way::Transport => {
                    (hooks.rclcpp_publish)(0, message);
                    (hooks.rcl_publish)(handle, message);
                    (hooks.rmw_publish)(rmw, message, stamp_ns);
                }
            }
        }
    }
}

impl Reception {
    /// Runs the callback for a message that was taken.
    pub fn tell(&self, message: &Message, callback: impl FnOnce()) {
        let Some((hooks, handle, rmw)) = self.tracetools else {
            stepscope_marks::flow_end(self.site, id(message));
            return callback();
        };
        if self.way == Way::Transport {
            // SAFETY: the addresses are those of living objects, and nothing is read through them.
            unsafe { (hooks.rmw_take)(rmw, message, hooks.real_ns(message), true) };
        }
        hooks.run(handle, self.way, callback);
    }
}

impl Due {
    /// Runs the timer's callback.
    pub fn tell(&self, callback: impl FnOnce()) {
        match self.0 {
            Some((hooks, handle)) => hooks.run(Some(handle), Way::Transport, callback),
            None => callback(),
        }
    }
}

impl Tracetools {
    fn run(&self, handle: Option<Handle>, way: Way, callback: impl FnOnce()) {
        let Some(handle) = handle else { return callback() };
        // SAFETY: only numbers.
        unsafe { (self.callback_start)(handle, way == Way::Within) };
        callback();
        // SAFETY: only numbers.
        unsafe { (self.callback_end)(handle) };
    }

    fn real_ns(&self, message: &Message) -> i64 {
        message.header.stamp_ns as i64 + self.to_real_ns
    }
}

/// The number of a message among those of all publishers of its topic.
fn id(message: &Message) -> u64 {
    u64::from(message.header.writer) << 40 | message.header.number
}

fn site(topic: &str) -> &'static Site {
    Box::leak(Box::new(Site::new(Box::leak(topic.to_owned().into_boxed_str()))))
}

fn new_handle() -> Handle {
    std::ptr::from_mut(Box::leak(Box::new(0_u64))) as Handle
}

/// A text that lives for ever; cut at a NUL.
fn text(text: &str) -> *const c_char {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).expect("it has no NUL").into_raw()
}

fn new_rmw_handle(topic: &str) -> &'static RmwHandle {
    let address = |name| text(name) as usize;
    Box::leak(Box::new(RmwHandle { implementation_identifier: address("ground"), data: 0, topic_name: address(topic) }))
}

fn to_real_ns() -> i64 {
    let real = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    real.as_nanos() as i64 - super::clock::now_ns() as i64
}
