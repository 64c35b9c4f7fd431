//! The kind of a frame's code, for tables and colours.
//!
//! The first rule that matches decides:
//!
//! 1. *python*, *kernel*: by the frame's language. Imported frames: names `py::...`, modules such as `[kernel.kallsyms]` or
//!    `[nf_tables]`, and the suffix `_[k]` of collapsed stacks.
//! 2. *allocator*: `malloc` and its family with glibc's inner functions, `operator new` and `delete`, Rust's allocation
//!    functions, and everything in jemalloc, mimalloc and tcmalloc.
//! 3. *runtime*: the C, C++ and threading run-time libraries, the dynamic linker and the vdso; without a module, their
//!    frequent functions; the language's standard library (`std::`, `core::`), which is compiled into the program; and the
//!    linker's stubs (`memcpy@plt`).
//! 4. *unknown*: a frame without a name, such as `[unknown]`, `[libdart.so]` or `libdart.so+0x1f30`.
//! 5. *native*: everything else.

use stepscope_model::compiler_work::{CompilerWork, JOBS_MODULE};
use stepscope_model::{Frame, FrameKind, Language, Module};

use crate::query::qualified_name::{own_name, trait_name};

/// The kind of code of a frame whose code is in `module`.
pub fn of(frame: &Frame, module: Option<&Module>) -> FrameKind {
    let name = &*frame.function;
    let module = module.map_or("", Module::name);
    if frame.language == Language::Python || name.starts_with("py::") {
        return FrameKind::Python;
    }
    if frame.language == Language::Kernel || is_kernel_module(module) || name.ends_with(KERNEL_MARK) {
        return FrameKind::Kernel;
    }
    if is_allocator_library(module) {
        return FrameKind::Allocator;
    }
    let own = own_name(name);
    if is_allocator_function(&own) {
        return FrameKind::Allocator;
    }
    if is_runtime_library(module) || is_runtime_library(bracketed(name)) {
        return FrameKind::Runtime;
    }
    if is_unnamed(name, module) {
        return FrameKind::Unknown;
    }
    if name.ends_with("@plt") {
        return FrameKind::Runtime;
    }
    if is_standard_library(&own)
        || is_rust_standard_impl(name, &own)
        || (module.is_empty() && is_runtime_function(&own))
    {
        return FrameKind::Runtime;
    }
    FrameKind::Native
}

/// The mark that collapse scripts append to functions of the kernel.
const KERNEL_MARK: &str = "_[k]";

/// The name of a kernel's function, without the mark that some sources append.
pub(crate) fn kernel_name(name: &str) -> &str {
    name.strip_suffix(KERNEL_MARK).unwrap_or(name)
}

/// Whether a mapping is kernel code: `[kernel.kallsyms]`, `[guest.kernel...]`, or a loadable module.
fn is_kernel_module(module: &str) -> bool {
    const USER: [&str; 8] = ["[vdso]", "[vsyscall]", "[vvar]", "[heap]", "[stack]", "[anon]", "[unknown]", "[uprobes]"];
    module.ends_with(".ko")
        || (module.starts_with('[')
            && module.ends_with(']')
            && !USER.contains(&module)
            && !module.starts_with("[anon")
            && !module.starts_with("[stack")
            && !module.starts_with("[jit")
            && CompilerWork::of_module(module).is_none()
            && module != JOBS_MODULE)
}

/// The module in an imported name: `[libc.so.6]` and `[[vdso]]` are nameless code of that module.
fn bracketed(name: &str) -> &str {
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or("")
}

pub(crate) fn is_unnamed(name: &str, module: &str) -> bool {
    let at_offset = |name: &str| name.strip_prefix("0x").is_some_and(is_hexadecimal);
    name.is_empty()
        || name == "unknown"
        || name == "_[i]"
        || !bracketed(name).is_empty()
        || at_offset(name)
        || name.rsplit_once('+').is_some_and(|(place, offset)| {
            at_offset(offset) && (place == module || (module.is_empty() && place.contains(".so")))
        })
}

fn is_hexadecimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a library's file name is `stem`, whatever its version: `libc.so.6`, `libc-2.31.so`, `libc.so`.
fn is_library(module: &str, stem: &str) -> bool {
    module.strip_prefix(stem).is_some_and(|rest| {
        rest.starts_with(".so") || (rest.starts_with("-2.") && rest.ends_with(".so")) || rest.starts_with(".so.")
    })
}

fn is_allocator_library(module: &str) -> bool {
    // The library that records the heap stands before the allocator.
    module.starts_with("stepscope-heap-")
        || ["libjemalloc", "libmimalloc", "libtcmalloc", "libtcmalloc_minimal"]
            .iter()
            .any(|stem| is_library(module, stem))
}

fn is_runtime_library(module: &str) -> bool {
    #[rustfmt::skip]
    const STEMS: [&str; 19] = [
        "libc", "libm", "libpthread", "librt", "libdl", "libstdc++", "libc++", "libc++abi", "libunwind", "libgcc_s",
        "libgomp", "libomp", "libiomp5", "libtbb", "ld-linux-x86-64", "ld-linux-aarch64", "ld-linux",
        "ld-musl-x86_64", "ld-musl-aarch64",
    ];
    const NAMES: [&str; 5] = ["[vdso]", "vdso", "linux-vdso.so.1", "linux-gate.so.1", "[vsyscall]"];
    NAMES.contains(&module)
        || is_library(module, "ld")
        || ((module.starts_with("lib") || module.starts_with("ld-"))
            && STEMS.iter().any(|stem| is_library(module, stem)))
}

/// A function of glibc without its aliases' decorations: `__GI___libc_free` is `free`.
pub(crate) fn undecorated(name: &str) -> &str {
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_');
    name.strip_prefix("libc_").unwrap_or(name)
}

fn is_allocator_function(own: &str) -> bool {
    #[rustfmt::skip]
    const FAMILY: [&str; 12] = [
        "malloc", "free", "cfree", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign",
        "valloc", "pvalloc", "malloc_usable_size",
    ];
    #[rustfmt::skip]
    const INNER: [&str; 13] = [
        "_int_malloc", "_int_free", "_int_realloc", "_int_memalign", "_int_free_merge_chunk",
        "_int_free_create_chunk", "_int_free_maybe_consolidate", "malloc_consolidate", "unlink_chunk", "sysmalloc",
        "systrim", "arena_get2", "arena_get_retry",
    ];
    #[rustfmt::skip]
    const RUST: [&str; 8] = [
        "__rust_alloc", "__rust_dealloc", "__rust_realloc", "__rust_alloc_zeroed", "__rdl_alloc", "__rdl_dealloc",
        "__rdl_realloc", "__rdl_alloc_zeroed",
    ];
    if own.contains("::") {
        return own.starts_with("alloc::alloc::") || own.starts_with("tcmalloc::");
    }
    FAMILY.contains(&undecorated(own))
        || INNER.contains(&own)
        || RUST.contains(&own)
        || [
            "operator new",
            "operator delete",
            "tcache_",
            "ptmalloc_",
            "je_",
            "mi_malloc",
            "mi_free",
            "tc_malloc",
            "tc_free",
        ]
        .iter()
        .any(|prefix| own.starts_with(prefix))
}

/// Whether it is declared in a language's standard library.
fn is_standard_library(own: &str) -> bool {
    ["std::", "__gnu_cxx::", "__cxxabiv1::", "core::", "alloc::", "__cxa_", "__gthread_"]
        .iter()
        .any(|prefix| own.starts_with(prefix))
}

/// A method of a Rust type or trait that the standard library declares: `<usize>::abs_diff`, `<T as core::cmp::Ord>::cmp`.
fn is_rust_standard_impl(name: &str, own: &str) -> bool {
    const PRIMITIVES: [&str; 18] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64", "bool",
        "char", "str", "()",
    ];
    if !name.starts_with('<') {
        return false;
    }
    let of_type = own.split("::").next().unwrap_or(own).trim_start_matches(['&', '[']);
    let is_parameter = of_type.len() == 1 && of_type.starts_with(|character: char| character.is_ascii_uppercase());
    PRIMITIVES.contains(&of_type.trim_end_matches(']'))
        || (is_parameter && trait_name(name).is_some_and(|of_trait| is_standard_library(&of_trait)))
}

/// Whether it is a function of the C run-time library. Imported stacks name no module.
fn is_runtime_function(own: &str) -> bool {
    #[rustfmt::skip]
    const NAMES: [&str; 34] = [
        "start_thread", "clone", "clone3", "_start", "libc_start_main", "libc_start_call_main", "syscall", "poll",
        "ppoll", "select", "epoll_wait", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "usleep",
        "read", "write", "open", "close", "mmap", "munmap", "mprotect", "madvise", "sched_yield", "memcpy", "memmove",
        "memset", "memcmp", "strlen", "strcmp", "recvmsg", "sendmsg", "qsort",
    ];
    #[rustfmt::skip]
    const PREFIXES: [&str; 19] = [
        "pthread_", "__pthread_", "___pthread_", "__GI_", "__libc_", "__memcpy_", "__memmove_", "__memset_",
        "__memcmp_", "__memchr_", "__strlen_", "__strcmp_", "__strchr_", "__strncmp_", "__lll_", "__futex_", "_dl_",
        "_IO_", "do_lookup_x",
    ];
    NAMES.contains(&own)
        || NAMES.contains(&own.trim_start_matches('_'))
        || PREFIXES.iter().any(|prefix| own.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, path: &str) -> &'static str {
        let module = (!path.is_empty()).then(|| Module { path: path.to_owned(), ..Module::default() });
        of(&Frame::named(name), module.as_ref()).name()
    }

    #[test]
    fn libraries_decide_whatever_the_functions_name() {
        assert_eq!(kind("__sin_fma", "/lib/x86_64-linux-gnu/libm.so.6"), "runtime");
        assert_eq!(kind("libc.so.6+0x8a1b0", "/lib/x86_64-linux-gnu/libc.so.6"), "runtime");
        assert_eq!(kind("do_lookup_x", "/lib64/ld-linux-x86-64.so.2"), "runtime");
        assert_eq!(kind("__vdso_clock_gettime", "[vdso]"), "runtime");
        assert_eq!(kind("x", "/lib/libc-2.31.so"), "runtime");
        assert_eq!(kind("arena_decay", "/usr/lib/libjemalloc.so.2"), "allocator");
        assert_eq!(kind("dart::step", "/usr/lib/libcurl.so.4"), "native");
        assert_eq!(kind("dart::step", "/usr/lib/libmujoco.so.3"), "native");
        assert_eq!(kind("main", "/usr/bin/ld-wrapper"), "native");
    }

    #[test]
    fn the_malloc_family_is_an_allocator_wherever_it_lives() {
        for name in
            ["malloc", "__GI___libc_free", "_int_malloc", "malloc_consolidate", "operator new", "operator delete[]"]
        {
            assert_eq!(kind(name, "/lib/libc.so.6"), "allocator", "{name}");
            assert_eq!(kind(name, ""), "allocator", "{name}");
        }
        assert_eq!(kind("operator new(unsigned long)", "/usr/lib/libstdc++.so.6"), "allocator");
        assert_eq!(kind("gz::Pool::malloc", "/usr/lib/libgz.so"), "native");
        assert_eq!(kind("__rust_alloc", "/srv/sim"), "allocator");
    }

    #[test]
    fn the_kernel_is_known_by_module_language_and_mark() {
        assert_eq!(kind("do_syscall_64", "[kernel.kallsyms]"), "kernel");
        assert_eq!(kind("nft_do_chain", "[nf_tables]"), "kernel");
        assert_eq!(kind("do_syscall_64_[k]", ""), "kernel");
        assert_eq!(of(&Frame { language: Language::Kernel, ..Frame::named("x") }, None), FrameKind::Kernel);
    }

    #[test]
    fn a_place_without_a_name_is_unknown() {
        for name in ["[unknown]", "[libdart.so.6.13.2]", "0x7f00aa10", "_[i]"] {
            assert_eq!(kind(name, ""), "unknown", "{name}");
        }
        assert_eq!(kind("libdart.so.6.13.2+0x1f30", "/usr/lib/libdart.so.6.13.2"), "unknown");
        assert_eq!(kind("a+0x10", "/usr/lib/libdart.so.6.13.2"), "native");
        assert_eq!(kind("[[vdso]]", ""), "runtime");
        assert_eq!(kind("[libc.so.6]", ""), "runtime");
    }

    #[test]
    fn standard_library_code_is_runtime_also_inside_the_program() {
        assert_eq!(kind("std::_Hashtable<gz::A, int>::find", "/srv/sim"), "runtime");
        assert_eq!(kind("core::ptr::drop_in_place<gz::A>", "/srv/sim"), "runtime");
        assert_eq!(kind("ns3::LogComponent::IsEnabled() const@plt", "/usr/lib/libns3-wifi.so"), "runtime");
        assert_eq!(kind("<usize>::abs_diff", "/srv/sim"), "runtime");
        assert_eq!(kind("__gthread_mutex_lock", "/srv/sim"), "runtime", "inlined from libstdc++");
        assert_eq!(kind("<usize as core::cmp::PartialOrd>::lt", "/srv/sim"), "runtime");
        assert_eq!(kind("<T as core::slice::sort::SmallSort>::small_sort", "/srv/sim"), "runtime");
        assert_eq!(kind("<T as sim::Solve>::solve", "/srv/sim"), "native");
        assert_eq!(kind("<sim::Pose as core::clone::Clone>::clone", "/srv/sim"), "native");
        assert_eq!(kind("pthread_mutex_lock", ""), "runtime");
        assert_eq!(kind("__memset_avx2_unaligned_erms", ""), "runtime");
        assert_eq!(kind("poll", "/srv/sim"), "native", "a function of the program's own that is called so");
        assert_eq!(kind("py::step:/srv/a.py", ""), "python");
    }
}
