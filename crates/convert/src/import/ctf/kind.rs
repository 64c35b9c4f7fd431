//! What an event is for, by its name.

use stepscope_assemble::ros2;

use super::{functions, kernel};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Kernel(kernel::Kind),
    Ros2(ros2::Kind),
    Function(functions::Kind),
    Other,
}

impl Kind {
    pub fn of(name: &str) -> Self {
        if let Some(name) = name.strip_prefix("ros2:") {
            return ros2::Kind::of(name).map_or(Kind::Other, Kind::Ros2);
        }
        let kernel = kernel::Kind::of(name).map(Kind::Kernel);
        kernel.or_else(|| functions::Kind::of(name).map(Kind::Function)).unwrap_or(Kind::Other)
    }
}
