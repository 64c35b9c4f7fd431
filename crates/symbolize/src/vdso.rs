//! Names in the vdso: kernel code that is mapped into every process and is in no file.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::debug_files::same_build;
use crate::image::{Image, hexadecimal};
use crate::texts::Texts;
use crate::{ModuleNames, Options, Position, Problem, module};

const NAME: &str = "[vdso]";

/// Size limit, far above any vdso, in case a line of `maps` is wrong.
const MAX_BYTES: u64 = 1 << 20;

pub(crate) fn name(offsets: &[u64], options: &Options, texts: &mut Texts) -> ModuleNames {
    let recorded = options.recorded_vdso.as_deref();
    let positions = Position::of_offsets(offsets);
    match open(recorded, options) {
        Ok(image) => module::name_image(&image, NAME, &positions, options, texts),
        Err(problem) => {
            ModuleNames { build_id: recorded.map(hexadecimal), ..module::nameless(NAME, &positions, problem, texts) }
        }
    }
}

fn open(recorded: Option<&[u8]>, options: &Options) -> Result<Image, Problem> {
    let path = Path::new(NAME);
    let unreadable = |reason: &str| Problem::Unreadable { path: path.to_owned(), reason: reason.to_owned() };
    let bytes = own_vdso().ok_or_else(|| unreadable("this process has none"))?;
    let own = Image::from_bytes(path, bytes)?;
    let Some(recorded) = recorded else { return Ok(own) };
    if own.build_id().is_some_and(|id| same_build(id, recorded)) {
        return Ok(own);
    }
    let hex = hexadecimal(recorded);
    let mut cached = options.build_id_caches.iter().map(|cache| cache.join(NAME).join(&hex).join("vdso"));
    cached.find_map(|path| Image::open(&path).ok()).ok_or_else(|| Problem::OtherBuild {
        path: path.to_owned(),
        recorded: hex,
        found: own.build_id().map_or("none".to_owned(), hexadecimal),
    })
}

/// The vdso of this process. All processes of this machine with the same word size have the same one.
pub fn own_vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(NAME))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let size = u64::from_str_radix(end, 16).ok()?.checked_sub(start).filter(|&size| size <= MAX_BYTES)?;
    let mut bytes = vec![0; size as usize];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSymbol};

    #[test]
    fn functions_of_the_vdso_have_names() {
        let Some(bytes) = own_vdso() else {
            println!("skipped: functions_of_the_vdso_have_names: this process has no vdso");
            return;
        };
        let image = Image::from_bytes(Path::new(NAME), bytes).unwrap();
        let elf = image.elf();
        let gettime = elf
            .dynamic_symbols()
            .find(|symbol| symbol.name().is_ok_and(|name| name.ends_with("clock_gettime") && name.starts_with("__")))
            .expect("every vdso has it");
        // The vdso is linked at 0, so its addresses are offsets.
        let named = name(&[gettime.address() + 1], &Options::default(), &mut Texts::default());
        assert_eq!(&*named.places[0].frames[0].function, gettime.name().unwrap());
        assert_eq!(named.problems, []);
    }

    #[test]
    fn the_vdso_of_another_kernel_is_not_used() {
        let options = Options { recorded_vdso: Some(vec![7; 20]), build_id_caches: Vec::new(), ..Options::default() };
        let named = name(&[0x900], &options, &mut Texts::default());
        assert_eq!(&*named.places[0].frames[0].function, "[vdso]+0x900");
        assert!(matches!(named.problems[..], [Problem::OtherBuild { .. }]));
    }
}
