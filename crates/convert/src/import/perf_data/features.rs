//! Features of a `perf.data` file: the machine and the recording.

use linux_perf_event_reader::constants::{
    PERF_RECORD_MISC_BUILD_ID_SIZE, PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL,
};
use rustc_hash::FxHashMap;

use crate::import::cursor::{Cursor, until_zero};

/// The features that are read.
#[derive(Debug, Default)]
pub(super) struct Features {
    pub host: Option<String>,
    pub kernel_release: Option<String>,
    pub perf_version: Option<String>,
    pub architecture: Option<String>,
    pub cpu: Option<String>,
    pub online_cpus: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub command_line: Vec<String>,
    pub events: Vec<EventDescription>,
    /// Build-ids of user code by path.
    pub build_ids: FxHashMap<Vec<u8>, Vec<u8>>,
    pub kernel_build_id: Option<Vec<u8>>,
    pub vdso_build_id: Option<Vec<u8>>,
}

/// An event and its name on perf's command line.
#[derive(Debug)]
pub(super) struct EventDescription {
    pub name: String,
    pub ids: Vec<u64>,
}

impl Features {
    /// Adds a feature by its number (`HEADER_*` in `tools/perf/util/header.h`). Damaged ones are skipped.
    pub fn add(&mut self, number: u64, mut content: Cursor<'_>) {
        match number {
            2 => self.add_build_ids(content),
            3 => self.host = content.text(),
            4 => self.kernel_release = content.text(),
            5 => self.perf_version = content.text(),
            6 => self.architecture = content.text(),
            7 => self.online_cpus = content.u32().and_then(|_available| content.u32()),
            8 => self.cpu = content.text(),
            10 => self.memory_bytes = content.u64().and_then(|kilobytes| kilobytes.checked_mul(1024)),
            11 => {
                let count = content.u32().unwrap_or(0);
                self.command_line = (0..count).map_while(|_| content.text()).collect();
            }
            12 => self.add_events(content),
            _ => {}
        }
    }

    fn add_events(&mut self, mut content: Cursor<'_>) {
        let (Some(count), Some(size)) = (content.u32(), content.u32()) else { return };
        for _ in 0..count {
            let Some(event) = EventDescription::read(&mut content, size) else { return };
            self.events.push(event);
        }
    }

    /// A sequence of records to the end.
    fn add_build_ids(&mut self, mut content: Cursor<'_>) {
        const HEADER_BYTES: usize = 8;
        while let (Some(_kind), Some(misc), Some(size)) = (content.u32(), content.u16(), content.u16()) {
            let body = usize::from(size).checked_sub(HEADER_BYTES).and_then(|size| content.take(size));
            let Some(body) = body else { return };
            self.add_build_id(misc, Cursor::new(body, content.endian));
        }
    }

    /// `{ i32 pid; u8 build_id[24]; char path[]; }`
    pub fn add_build_id(&mut self, misc: u16, mut body: Cursor<'_>) {
        let (Some(_pid), Some(block)) = (body.u32(), body.take(24)) else { return };
        let id = match misc & PERF_RECORD_MISC_BUILD_ID_SIZE != 0 {
            true => &block[..usize::from(block[20]).min(20)],
            // Before perf 5.12 the size is missing, and shorter ids are padded with zeros.
            false => without_filling(&block[..20]),
        };
        if id.is_empty() {
            return;
        }
        let path = until_zero(body.bytes);
        let is_kernel = misc & PERF_RECORD_MISC_CPUMODE_MASK == PERF_RECORD_MISC_KERNEL;
        match path.as_str() {
            "[vdso]" => self.vdso_build_id = Some(id.to_vec()),
            "[kernel.kallsyms]" => self.kernel_build_id = Some(id.to_vec()),
            _ if is_kernel => {}
            _ => {
                self.build_ids.insert(path.into_bytes(), id.to_vec());
            }
        }
    }
}

fn without_filling(id: &[u8]) -> &[u8] {
    let filling = id.rchunks_exact(4).take_while(|chunk| *chunk == [0; 4]).count();
    &id[..id.len() - 4 * filling]
}

impl EventDescription {
    fn read(content: &mut Cursor<'_>, attribute_size: u32) -> Option<Self> {
        content.take(usize::try_from(attribute_size).ok()?)?;
        let ids = usize::try_from(content.u32()?).ok()?;
        let name = content.text()?;
        let ids = content.take(ids.checked_mul(8)?)?;
        Some(Self { name, ids: Cursor::new(ids, content.endian).u64s() })
    }
}
