//! Names of functions that LTTng-UST recorded by address (`-finstrument-functions`), by the files mapped there.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_ctf::Event;
use stepscope_model::Scope;
use stepscope_symbolize::{Code, Symbolizer};

use super::{number, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Enter,
    Exit,
    /// A file is mapped.
    Mapped,
}

impl Kind {
    pub fn of(name: &str) -> Option<Self> {
        let (provider, event) = name.split_once(':')?;
        Some(match (provider, event) {
            ("lttng_ust_cyg_profile" | "lttng_ust_cyg_profile_fast", "func_entry") => Kind::Enter,
            ("lttng_ust_cyg_profile" | "lttng_ust_cyg_profile_fast", "func_exit") => Kind::Exit,
            ("lttng_ust_statedump", "bin_info") | ("lttng_ust_lib", "load") | ("lttng_ust_dl", "dlopen") => {
                Kind::Mapped
            }
            _ => return None,
        })
    }
}

/// A mapped file.
struct Mapped {
    end: u64,
    path: Arc<str>,
}

#[derive(Default)]
pub(super) struct Functions {
    /// By process and start.
    mapped: FxHashMap<u32, BTreeMap<u64, Mapped>>,
    names: FxHashMap<(u32, u64), Arc<str>>,
    /// Files and offsets, by the name that stands for them until their symbol is known.
    places: HashMap<Arc<str>, (Arc<str>, u64)>,
    /// Names of functions, by the names that stood for them.
    symbols: HashMap<Arc<str>, Arc<str>>,
}

impl Functions {
    /// Takes a mapping.
    pub fn map(&mut self, pid: u32, event: &Event<'_>) {
        let (Some(start), Some(path)) = (number(event, "baddr"), text(event, "path")) else { return };
        let size = number(event, "memsz").unwrap_or(0);
        let path = String::from_utf8_lossy(path).into();
        self.mapped.entry(pid).or_default().insert(start, Mapped { end: start.saturating_add(size), path });
        self.names.retain(|(of, _), _| *of != pid);
    }

    /// A name of the function at this address: `libfoo.so+0x1234` until [`Self::rename`].
    pub fn name(&mut self, pid: u32, address: u64) -> Arc<str> {
        if let Some(name) = self.names.get(&(pid, address)) {
            return name.clone();
        }
        let mapped = self.mapped.get(&pid).and_then(|mapped| mapped.range(..=address).next_back());
        let name: Arc<str> = match mapped.filter(|(_, mapped)| address < mapped.end) {
            Some((start, mapped)) => {
                let offset = address - start;
                let name: Arc<str> = format!("{}+{offset:#x}", mapped.path).into();
                if !self.symbols.contains_key(&name) {
                    self.places.insert(name.clone(), (mapped.path.clone(), offset));
                }
                name
            }
            None => format!("{address:#x}").into(),
        };
        self.names.insert((pid, address), name.clone());
        name
    }

    /// Names the scopes by the symbols of their files.
    pub fn rename(&mut self, scopes: &mut [Scope], symbolizer: &mut Symbolizer) {
        let mut of_files: BTreeMap<Arc<str>, Vec<(Arc<str>, u64)>> = BTreeMap::new();
        for (name, (path, offset)) in std::mem::take(&mut self.places) {
            of_files.entry(path).or_default().push((name, offset));
        }
        for (path, places) in of_files {
            let offsets: Vec<u64> = places.iter().map(|place| place.1).collect();
            let named = symbolizer.name(&Code::file(&*path), &offsets);
            for ((name, _), place) in places.iter().zip(&named.places) {
                // The outermost is the function itself.
                self.symbols.extend(place.frames.first().map(|frame| (name.clone(), frame.function.clone())));
            }
        }
        if self.symbols.is_empty() {
            return;
        }
        for scope in scopes {
            if let Some(function) = self.symbols.get(&scope.name) {
                scope.name = function.clone();
            }
        }
    }
}
