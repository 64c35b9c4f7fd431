//! The instructions of a function, as `objdump` prints them.
//!
//! The unwind tables say where a function starts and ends; symbol tables do where there are none. Lines and inlined functions come from the same
//! debug information as those of samples, so that an instruction has the line under which its samples are shown.

use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use object::{Object, ObjectSymbol};
use stepscope_model::Module;

use crate::function_starts::FunctionStarts;
use crate::image::Image;
use crate::symbolizer::bytes_of;
use crate::{Position, Symbolizer};

/// The disassembler. Debian's package `binutils` has it.
const OBJDUMP: &str = "objdump";

/// Most bytes of code of one function: some 16,000 instructions. A few loops of interpreters are larger.
pub(crate) const MOST_CODE: u64 = 64 << 10;

/// Most bytes of its text that are read.
const MOST_TEXT: u64 = 32 << 20;

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its address, as in the file's symbol table.
    pub address: u64,
    /// Mnemonic and operands, in the syntax of `objdump`.
    pub text: String,
    /// The innermost function that it is of: an inlined one, or the function itself.
    pub function: Arc<str>,
    /// Source file and line, if debug information has them.
    pub file: Option<Arc<str>>,
    /// Line in the file.
    pub line: Option<u32>,
}

/// Why there are no instructions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoInstructions {
    /// The file may have changed.
    #[error("{0}: the recorded build of this file is not here, so its instructions cannot be shown")]
    OtherBuild(String),
    /// The capture has no build-id of it.
    #[error("{0}: the capture has no build-id of this file, so the file that is here now may be of another build")]
    UnknownBuild(String),
    /// Nothing says where the function ends.
    #[error("{0}: no unwind table and no symbol says where this function starts and ends")]
    NoExtent(String),
    /// The program is missing.
    #[error("`objdump` is missing: install it (Debian package: binutils)")]
    NoObjdump,
    /// It failed.
    #[error("`objdump` failed: {0}")]
    Failed(String),
}

/// The code of a function in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCode {
    /// The file.
    pub path: PathBuf,
    /// Addresses of the function, as in the file's symbol table. Of a very large function, those around the one that was asked for.
    pub extent: Range<u64>,
}

impl Symbolizer {
    /// The code of the function of a module that holds `address`, in the recorded build.
    ///
    /// # Errors
    /// If that build is not here, or the function's extent is unknown.
    pub fn code_at(&self, module: &Module, address: u64) -> Result<FunctionCode, NoInstructions> {
        let image = self.recorded_image(module)?;
        let elf = image.elf();
        let extent = extent(&elf, FunctionStarts::of(&elf).as_ref(), address);
        let extent = extent.ok_or_else(|| NoInstructions::NoExtent(module.name().to_owned()))?;
        Ok(FunctionCode { path: image.path().to_owned(), extent })
    }

    /// The file of a module, in the recorded build.
    pub(crate) fn recorded_image(&self, module: &Module) -> Result<Image, NoInstructions> {
        let name = || module.name().to_owned();
        let recorded = module.build_id.as_deref().filter(|id| !id.is_empty());
        let build_id = bytes_of(recorded.ok_or_else(|| NoInstructions::UnknownBuild(name()))?);
        let path = self.find_file(Path::new(&module.path), Some(&build_id));
        let path = path.ok_or_else(|| NoInstructions::OtherBuild(name()))?;
        Image::open(&path).map_err(|_| NoInstructions::OtherBuild(name()))
    }

    /// The instructions of a function of a module.
    ///
    /// # Errors
    /// If `objdump` is missing or fails.
    pub fn instructions(&mut self, module: &Module, code: &FunctionCode) -> Result<Vec<Instruction>, NoInstructions> {
        let printed = objdump(code)?;
        let (addresses, texts): (Vec<u64>, Vec<&str>) = printed.lines().filter_map(instruction).unzip();
        let positions: Vec<Position> = addresses.iter().map(|address| Position::Address(*address)).collect();
        let places = self.name_module(module, &positions).places;
        let found = addresses.into_iter().zip(texts).zip(places).map(|((address, text), mut place)| {
            let frame = place.frames.pop().expect("a place has a frame");
            let text = text.to_owned();
            Instruction { address, text, function: frame.function, file: frame.file, line: frame.line }
        });
        Ok(found.collect())
    }
}

/// Addresses of the function that holds `address`. Of a very large function, those around it.
pub(crate) fn extent(elf: &object::File<'_>, starts: Option<&FunctionStarts<'_>>, address: u64) -> Option<Range<u64>> {
    let unwound = starts.and_then(|starts| starts.extent_of(address));
    let mut extent = unwound.or_else(|| {
        let symbols = elf.symbols().chain(elf.dynamic_symbols());
        let extents = symbols.map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()));
        extents.filter(|extent| extent.contains(&address)).max_by_key(|extent| extent.start)
    })?;
    if extent.end - extent.start > MOST_CODE {
        extent.start = extent.start.max(address.saturating_sub(MOST_CODE / 2));
        extent.end = extent.end.min(extent.start + MOST_CODE);
    }
    Some(extent)
}

fn objdump(FunctionCode { path, extent }: &FunctionCode) -> Result<String, NoInstructions> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NoInstructions::NoObjdump,
        _ => NoInstructions::Failed(error.to_string()),
    };
    let mut child = Command::new(OBJDUMP)
        .args(["--disassemble", "--demangle", "--no-show-raw-insn"])
        .arg(format!("--start-address={:#x}", extent.start))
        .arg(format!("--stop-address={:#x}", extent.end))
        // A path may start with a dash.
        .arg("--")
        .arg(path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut bytes = Vec::new();
    let output = child.stdout.take().expect("it is piped");
    let read = output.take(MOST_TEXT).read_to_end(&mut bytes);
    let ended = child.wait_with_output().map_err(failed)?;
    read.map_err(failed)?;
    if bytes.is_empty() {
        return Err(NoInstructions::Failed(String::from_utf8_lossy(&ended.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Address and text of a line such as `  4011f6:\tmov    %rsp,%rbp`.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (address, text) = line.split_once(':')?;
    let text = text.strip_prefix('\t')?.trim_end();
    Some((u64::from_str_radix(address.trim_start(), 16).ok()?, text)).filter(|(_, text)| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_instructions_of_this_test(number: u32) -> u32 {
        std::hint::black_box(number) * 3 + 1
    }

    fn this_program() -> Module {
        let path = std::env::current_exe().unwrap();
        let build_id = Image::open(&path).unwrap().build_id().map(crate::image::hexadecimal);
        Module { path: path.to_string_lossy().into_owned(), build_id, ..Module::default() }
    }

    /// Address of the function above in its file.
    fn address(module: &Module) -> u64 {
        let image = Image::open(Path::new(&module.path)).unwrap();
        let elf = image.elf();
        let symbol = elf.symbols().find(|symbol| symbol.name() == Ok("stepscope_instructions_of_this_test"));
        symbol.expect("this program has a symbol table").address()
    }

    #[test]
    fn instructions_of_a_function_have_their_addresses_and_lines() {
        assert_eq!(stepscope_instructions_of_this_test(1), 4);
        let module = this_program();
        let start = address(&module);
        if module.build_id.is_none() {
            println!(
                "skipped: instructions_of_a_function_have_their_addresses_and_lines: this linker writes no build-id"
            );
            return;
        }
        let mut symbolizer = Symbolizer::default();
        // In the middle of the function.
        let code = symbolizer.code_at(&module, start + 1).unwrap();
        assert_eq!(code.extent.start, start);
        let found = match symbolizer.instructions(&module, &code) {
            Err(NoInstructions::NoObjdump) => {
                println!("skipped: instructions_of_a_function_have_their_addresses_and_lines: objdump is missing");
                return;
            }
            found => found.unwrap(),
        };
        assert_eq!(found[0].address, start);
        assert!(found.iter().all(|one| !one.function.is_empty() && code.extent.contains(&one.address)));
        assert!(found.iter().any(|one| one.text.starts_with("ret")), "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0].address < pair[1].address));
    }

    #[test]
    fn another_build_has_no_instructions() {
        let other = Module { build_id: Some("00ff00ff".to_owned()), ..this_program() };
        let problem = Symbolizer::default().code_at(&other, 1).unwrap_err();
        assert_eq!(problem, NoInstructions::OtherBuild(other.name().to_owned()));
        let unknown = Module { build_id: None, ..this_program() };
        let problem = Symbolizer::default().code_at(&unknown, 1).unwrap_err();
        assert_eq!(problem, NoInstructions::UnknownBuild(unknown.name().to_owned()));
    }

    #[test]
    fn a_line_of_objdump_is_an_address_and_a_text() {
        assert_eq!(instruction("  4011f6:\tmov    %rsp,%rbp"), Some((0x4011f6, "mov    %rsp,%rbp")));
        assert_eq!(instruction("00000000004011f6 <main>:"), None);
        assert_eq!(instruction("/bin/sim:     file format elf64-x86-64"), None);
        assert_eq!(instruction("  4011f6:\t"), None);
        assert_eq!(instruction(""), None);
    }
}
