//! GPU time and memory of a process, from the `fdinfo` of its DRM descriptors.
//!
//! `Documentation/gpu/drm-usage-stats.rst`: `drm-client-id` tells clients apart, which may have several descriptors; engines have
//! `drm-engine-NAME: N ns`, memory has `drm-resident-REGION` or, before it, `drm-memory-REGION`.

use std::collections::HashSet;

use crate::text::{fields, lines, number};

/// What the GPU did for a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GpuUse {
    /// Time of all engines.
    pub ns: i64,
    /// Resident memory in all regions.
    pub memory_bytes: i64,
}

/// Sums the clients of one process.
#[derive(Debug, Default)]
pub struct Clients {
    seen: HashSet<i64>,
    sum: GpuUse,
}

impl Clients {
    /// Adds the text of a descriptor, unless its client was added before.
    pub fn add(&mut self, fdinfo: &[u8]) {
        let value = |line: &[u8], key: &[u8]| {
            line.starts_with(key).then(|| number(fields(&line[key.len()..]).next()?)).flatten()
        };
        if let Some(client) = lines(fdinfo).find_map(|line| value(line, b"drm-client-id:"))
            && !self.seen.insert(client)
        {
            return;
        }
        let has_resident = lines(fdinfo).any(|line| line.starts_with(b"drm-resident-"));
        let memory: &[u8] = if has_resident { b"drm-resident-" } else { b"drm-memory-" };
        for line in lines(fdinfo) {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (key, mut rest) = (&line[..colon], fields(&line[colon + 1..]));
            let Some(value) = rest.next().and_then(number) else { continue };
            if key.starts_with(b"drm-engine-") && !key.starts_with(b"drm-engine-capacity-") {
                self.sum.ns = self.sum.ns.saturating_add(value);
            } else if key.starts_with(memory) {
                let unit = match rest.next() {
                    Some(b"KiB") => 1024,
                    Some(b"MiB") => 1024 * 1024,
                    _ => 1,
                };
                self.sum.memory_bytes = self.sum.memory_bytes.saturating_add(value.saturating_mul(unit));
            }
        }
    }

    /// The sum of all clients; `None` if there is none.
    pub fn sum(self) -> Option<GpuUse> {
        (!self.seen.is_empty()).then_some(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_two_descriptors_counts_once() {
        let first = b"pos:\t0\ndrm-driver:\ti915\ndrm-client-id:\t7\ndrm-engine-render:\t1000 ns\ndrm-engine-copy:\t50 ns\n\
            drm-engine-capacity-video:\t2\ndrm-memory-system0:\t9 KiB\ndrm-resident-system0:\t4 KiB\ndrm-resident-vram0:\t1 MiB\n";
        let other = b"drm-client-id:\t8\ndrm-engine-render:\t5 ns\ndrm-memory-vram:\t100\n";
        let mut clients = Clients::default();
        for text in [&first[..], &first[..], &other[..]] {
            clients.add(text);
        }
        assert_eq!(clients.sum(), Some(GpuUse { ns: 1055, memory_bytes: 4096 + 1_048_576 + 100 }));
        assert_eq!(Clients::default().sum(), None);
    }
}
