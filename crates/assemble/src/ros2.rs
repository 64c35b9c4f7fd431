//! ROS 2: what its libraries tell `tracetools`, joined to the way of each message.
//!
//! rcl, rmw and rclcpp call a function of the library `tracetools` when they make a node, a publisher, a subscription or a timer, when a
//! message is published or taken, and when a callback starts or ends. These calls arrive in two ways: as events of a recording of
//! ros2_tracing, and as uprobes on the functions. Their arguments have the same names in both
//! (`tracetools/include/tracetools/tracetools.h`, `tp_call.h`), and some are missing in some versions.

mod graph;
mod messages;
mod services;

use strum::{EnumString, VariantArray};

pub use messages::{CallbackEvent, Caller, Messages, Stage};

/// A function of `tracetools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, VariantArray)]
pub enum Kind {
    /// A callback starts.
    #[strum(serialize = "callback_start")]
    CallbackStart,
    /// A callback ends.
    #[strum(serialize = "callback_end")]
    CallbackEnd,
    /// A node is made.
    #[strum(serialize = "rcl_node_init")]
    Node,
    /// A subscription is made.
    #[strum(serialize = "rcl_subscription_init")]
    Subscription,
    /// An object of rclcpp serves a subscription.
    #[strum(serialize = "rclcpp_subscription_init")]
    SubscriptionObject,
    /// A subscription has this callback.
    #[strum(serialize = "rclcpp_subscription_callback_added")]
    SubscriptionCallback,
    /// A service is made.
    #[strum(serialize = "rcl_service_init")]
    Service,
    /// A service has this callback.
    #[strum(serialize = "rclcpp_service_callback_added")]
    ServiceCallback,
    /// A client of a service is made.
    #[strum(serialize = "rcl_client_init")]
    Client,
    /// The transport gives the client an id (Kilted and later).
    #[strum(serialize = "rmw_client_init")]
    ClientId,
    /// A timer is made.
    #[strum(serialize = "rcl_timer_init")]
    Timer,
    /// A timer has this callback.
    #[strum(serialize = "rclcpp_timer_callback_added")]
    TimerCallback,
    /// A timer belongs to this node.
    #[strum(serialize = "rclcpp_timer_link_node")]
    TimerNode,
    /// A callback is this function.
    #[strum(serialize = "rclcpp_callback_register", serialize = "callback_register")]
    Symbol,
    /// A publisher is made.
    #[strum(serialize = "rcl_publisher_init")]
    Publisher,
    /// The program hands a message over, of which the publisher may be unknown.
    #[strum(serialize = "rclcpp_publish")]
    HandedOver,
    /// The program hands a message over, to subscriptions of its own process.
    #[strum(serialize = "rclcpp_intra_publish")]
    HandedOverWithin,
    /// A publisher publishes it.
    #[strum(serialize = "rcl_publish")]
    Published,
    /// The transport has it.
    #[strum(serialize = "rmw_publish")]
    Sent,
    /// A subscription takes one.
    #[strum(serialize = "rmw_take")]
    Taken,
    /// A message is put into the buffer of a subscription of the same process.
    #[strum(serialize = "rclcpp_ring_buffer_enqueue")]
    Enqueued,
    /// It is taken from there.
    #[strum(serialize = "rclcpp_ring_buffer_dequeue")]
    Dequeued,
    /// A client sends a request (Kilted and later).
    #[strum(serialize = "rmw_send_request")]
    RequestSent,
    /// A service takes one.
    #[strum(serialize = "rmw_take_request")]
    RequestTaken,
    /// A service sends a response.
    #[strum(serialize = "rmw_send_response")]
    ResponseSent,
    /// A client takes one.
    #[strum(serialize = "rmw_take_response")]
    ResponseTaken,
}

impl Kind {
    /// All functions.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// By the name of the event: without `ros2:`, and of the function: without `ros_trace_`.
    pub fn of(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// The arguments of a call by their names.
pub trait Fields {
    /// A number, an address or a handle. Of an id of 16 bytes, `client_gid` and `gid` are the first 8 in little-endian order, and
    /// `client_gid_rest` and `gid_rest` the others.
    fn number(&self, field: &str) -> Option<u64>;
    /// A text.
    fn text(&self, field: &str) -> Option<&[u8]>;
}

#[cfg(test)]
mod tests;
