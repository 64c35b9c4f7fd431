//! Handles into the tables of one [`Capture`](crate::Capture).
//!
//! Each is the index of a row, typed so that a frame cannot be looked up among stacks. They are invalid in other
//! captures: join captures by name, never by handle.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The index of the row in its table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The handle of row `index`.
            ///
            /// # Panics
            /// If `index` exceeds `u32::MAX`. Readers refuse tables of that size.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("a table holds fewer than 2^32 rows"))
            }
        }
    )*};
}

ids! {
    /// A row of `processes`. Not a pid, because the kernel reuses pids.
    ProcessId
    /// A row of `threads`. Not a tid, because the kernel reuses tids.
    ThreadId
    /// A row of `modules`.
    ModuleId
    /// A row of `frames`.
    FrameId
    /// A row of `stacks`: a node of the call tree, which stands for the path from the root to it.
    StackId
    /// An entry of [`CaptureInfo::events`](crate::CaptureInfo::events).
    EventId
}
