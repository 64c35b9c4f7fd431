//! [`Machine`]: what a capture was recorded on.

use serde::{Deserialize, Serialize};

/// The machine a capture was recorded on: what must be equal for two captures to be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// CPU model.
    pub cpu: String,
    /// Number of online logical CPUs.
    pub cores: u32,
    /// Installed memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// CPU architecture, e.g. `x86_64`.
    pub architecture: String,
    /// Frequency governor, where there is one.
    #[serde(default)]
    pub governor: Option<String>,
    /// Name of the hypervisor, where there is one.
    #[serde(default)]
    pub virtualization: Option<String>,
    /// Whether hardware events can be counted.
    pub pmu: bool,
    /// Load average over the last minute at the start, in thousandths: other work inflates CPU seconds too.
    pub load_milli: u64,
}
