//! [`Family`]: kinds of code that many functions share, so that their cost is one row and not fifty.
//!
//! The members of a family have different names (`malloc`, `_int_free`, `operator new`) and one cause: somebody allocates.
//! A user's own groups (`--group 'stbi_*'`) come first, then the built-in families in the order of [`Family`].

use std::borrow::Cow;
use std::sync::Arc;

use stepscope_model::FrameKind;

use crate::query::frame_kind::undecorated;
use crate::query::qualified_name::{own_name, trait_name};

/// A family of functions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Functions that match a pattern of the user.
    Group(Arc<str>),
    /// What Stepscope itself does in the recorded program.
    Recording,
    /// The dynamic linker: symbol look-ups, relocation, loading of libraries.
    DynamicLinking,
    /// Decoders and encoders of images.
    ImageDecoding,
    /// Compression libraries.
    Decompression,
    /// Mutexes, condition variables, and what waits in them.
    Locks,
    /// Allocation and release of memory.
    Allocation,
    /// Copies, moves, fills and comparisons of memory.
    MemoryCopies,
    /// Functions of the mathematics library: trigonometry, powers, logarithms.
    Mathematics,
    /// Formatting and parsing of text, streams.
    TextFormatting,
    /// Strings of the language's standard library.
    Strings,
    /// Containers and algorithms of the language's standard library.
    Containers,
    /// System calls, page faults and interrupts.
    Kernel,
    /// Code of one library that is no run-time library: the name of the library, or of the Python package.
    Library(Arc<str>),
}

impl Family {
    /// Its name in tables.
    pub fn name(&self) -> &str {
        match self {
            Family::Group(name) | Family::Library(name) => name,
            Family::Recording => "recording by stepscope",
            Family::DynamicLinking => "dynamic linking",
            Family::ImageDecoding => "image decoding",
            Family::Decompression => "decompression",
            Family::Locks => "locks",
            Family::Allocation => "allocation",
            Family::MemoryCopies => "memory copies",
            Family::Mathematics => "mathematics",
            Family::TextFormatting => "text formatting",
            Family::Strings => "strings",
            Family::Containers => "containers",
            Family::Kernel => "kernel",
        }
    }

    /// Whether it keeps what its functions call: a decoder's allocations are part of decoding. Of other families the
    /// innermost one counts: a container's allocations are allocation.
    pub fn keeps_callees(&self) -> bool {
        match self {
            Family::Group(_)
            | Family::DynamicLinking
            | Family::ImageDecoding
            | Family::Decompression
            | Family::Library(_) => true,
            Family::Recording
            | Family::Locks
            | Family::Allocation
            | Family::MemoryCopies
            | Family::Mathematics
            | Family::TextFormatting
            | Family::Strings
            | Family::Containers
            | Family::Kernel => false,
        }
    }

    /// Whether a function that is no run-time library's is of a library that everybody uses and nobody changes.
    pub fn is_library(name: &str, module: &str, kind: FrameKind) -> bool {
        /// Beginnings of the modules of such libraries that are no family.
        const MODULES: [&str; 10] = [
            "libsqlite3",
            "libpq.",
            "libssl.",
            "libcrypto.",
            "libxml2.",
            "libexpat",
            "libyaml",
            "libtinyxml",
            "libcurl",
            "libglib-2",
        ];
        if matches!(kind, FrameKind::Python | FrameKind::Group) {
            return false;
        }
        let is_one = |start: &&str| module.starts_with(*start);
        MODULES.iter().any(is_one) || Self::built_in(name, module, kind).is_some()
    }

    /// The built-in family of a function outside of owned code, if it is of one.
    pub fn built_in(name: &str, module: &str, kind: FrameKind) -> Option<Self> {
        match kind {
            FrameKind::Kernel => return Some(Family::Kernel),
            FrameKind::Allocator => return Some(Family::Allocation),
            FrameKind::Group | FrameKind::Python => return None,
            FrameKind::Native | FrameKind::Runtime | FrameKind::Unknown => {}
        }
        let runtime = kind == FrameKind::Runtime;
        let named = |own: &str| RULES.iter().find(|rule| rule.matches(module, own, runtime));
        let own = without_inline_namespace(own_name(name));
        let rule = named(&own).or_else(|| named(&trait_name(name)?));
        rule.map(|rule| rule.family.clone())
    }
}

/// A name of the C++ standard library without the inline namespace of its ABI.
fn without_inline_namespace(own: Cow<'_, str>) -> Cow<'_, str> {
    match own.strip_prefix("std::__cxx11::").or_else(|| own.strip_prefix("std::__1::")) {
        Some(rest) => Cow::Owned(format!("std::{rest}")),
        None => own,
    }
}

/// How the functions of a family are recognised. Prefixes of names hold for the part of a name that [`own_name`] keeps.
struct Rule {
    family: Family,
    /// Beginnings of the module's file name.
    modules: &'static [&'static str],
    /// Beginnings of the function's name, wherever its code is.
    anywhere: &'static [&'static str],
    /// Beginnings of the function's name in run-time libraries, without leading underscores.
    runtime: &'static [&'static str],
}

impl Rule {
    fn matches(&self, module: &str, own: &str, runtime: bool) -> bool {
        let plain = undecorated(own);
        self.modules.iter().any(|stem| module.starts_with(stem))
            || self.anywhere.iter().any(|start| own.starts_with(start))
            || (runtime && self.runtime.iter().any(|start| own.starts_with(start) || plain.starts_with(start)))
    }
}

const RULES: [Rule; 10] = [
    Rule { family: Family::Mathematics, modules: &["libm.", "libm-", "libmvec"], anywhere: &[], runtime: &[] },
    Rule { family: Family::Recording, modules: &["stepscope-python-", "stepscope-heap-"], anywhere: &[], runtime: &[] },
    Rule {
        family: Family::DynamicLinking,
        modules: &["ld-linux", "ld-musl", "ld-2.", "ld.so", "libdl.", "libdl-"],
        anywhere: &[],
        runtime: &["_dl_", "dl_", "dlopen", "dlsym", "dlclose", "do_lookup_x"],
    },
    Rule {
        family: Family::ImageDecoding,
        modules: &[
            "libpng",
            "libjpeg",
            "libturbojpeg",
            "libwebp",
            "libtiff",
            "libfreeimage",
            "libgif",
            "libopenjp2",
            "libavif",
        ],
        anywhere: &[
            "stbi_",
            "stbi__",
            "zune_jpeg::",
            "zune_png::",
            "jpeg_decoder::",
            "png::",
            "image::codecs::",
            "lodepng",
        ],
        runtime: &[],
    },
    Rule {
        family: Family::Decompression,
        modules: &["libz.", "libz-", "libzstd", "liblzma", "libbz2", "liblz4", "libbrotli", "libsnappy", "libzip"],
        anywhere: &[
            "ZSTD_",
            "LZ4_",
            "BZ2_",
            "deflate",
            "inflate",
            "miniz_oxide::",
            "flate2::",
            "zune_inflate::",
            "lzma_",
            "Brotli",
        ],
        runtime: &[],
    },
    Rule {
        family: Family::Locks,
        modules: &[],
        anywhere: &[
            "parking_lot::",
            "parking_lot_core::",
            "boost::mutex",
            "boost::shared_mutex",
            "boost::condition_variable",
        ],
        runtime: &[
            "pthread_mutex_",
            "pthread_rwlock_",
            "pthread_cond_",
            "pthread_spin_",
            "lll_",
            "futex",
            "std::mutex",
            "std::shared_mutex",
            "std::recursive_mutex",
            "std::timed_mutex",
            "std::condition_variable",
            "std::unique_lock",
            "std::lock_guard",
            "std::scoped_lock",
            "std::shared_lock",
            "std::sync::mutex",
            "std::sync::rwlock",
            "std::sync::poison",
            "std::sys::sync",
            "std::sys::pal::unix::futex",
            "sem_wait",
            "sem_post",
            "sem_timedwait",
        ],
    },
    Rule {
        family: Family::MemoryCopies,
        modules: &[],
        anywhere: &[],
        runtime: &[
            "memcpy",
            "memmove",
            "memset",
            "memcmp",
            "mempcpy",
            "bcmp",
            "bcopy",
            "bzero",
            "core::intrinsics::copy",
        ],
    },
    Rule {
        family: Family::TextFormatting,
        modules: &[],
        anywhere: &["fmt::v"],
        runtime: &[
            "std::basic_ostream",
            "std::ostream",
            "std::basic_istream",
            "std::istream",
            "std::basic_stringbuf",
            "std::basic_stringstream",
            "std::basic_ostringstream",
            "std::basic_istringstream",
            "std::basic_ios",
            "std::basic_streambuf",
            "std::num_put",
            "std::num_get",
            "std::locale",
            "std::to_string",
            "std::stod",
            "std::stoi",
            "vfprintf",
            "printf",
            "fprintf",
            "sprintf",
            "snprintf",
            "vsnprintf",
            "vsprintf",
            "sscanf",
            "vfscanf",
            "vsscanf",
            "strtod",
            "strtol",
            "strtoul",
            "strtof",
            "core::fmt::",
            "alloc::fmt::",
            "core::num::",
        ],
    },
    Rule {
        family: Family::Strings,
        modules: &[],
        anywhere: &[],
        runtime: &[
            "std::basic_string",
            "std::string",
            "std::char_traits",
            "std::operator+",
            "alloc::string::",
            "alloc::str::",
            "core::str::",
            "strlen",
            "strcmp",
            "strncmp",
            "strchr",
            "strrchr",
            "strcpy",
            "strncpy",
            "strdup",
            "strstr",
            "memchr",
            "strcasecmp",
        ],
    },
    Rule {
        family: Family::Containers,
        modules: &[],
        anywhere: &[
            "hashbrown::",
            "absl::container_internal::",
            "absl::flat_hash_map",
            "robin_hood::",
            "boost::unordered",
            "boost::container::",
            "indexmap::",
        ],
        runtime: &[
            "std::vector",
            "std::map",
            "std::set",
            "std::multimap",
            "std::multiset",
            "std::unordered_",
            "std::_Hashtable",
            "std::_Rb_tree",
            "std::_Hash",
            "std::_Prime",
            "std::deque",
            "std::_Deque",
            "std::list",
            "std::_List",
            "std::forward_list",
            "std::array",
            "std::queue",
            "std::stack",
            "std::priority_queue",
            "std::__detail::",
            "__gnu_cxx::__normal_iterator",
            "std::less",
            "std::hash",
            "std::equal_to",
            "std::sort",
            "std::__sort",
            "std::__introsort",
            "std::__insertion_sort",
            "std::__adjust_heap",
            "std::__unguarded",
            "std::find",
            "std::__find",
            "std::lower_bound",
            "std::__lower_bound",
            "std::upper_bound",
            "std::copy",
            "std::__copy",
            "std::fill",
            "std::__fill",
            "std::uninitialized_",
            "std::__uninitialized",
            "std::_Destroy",
            "std::pair",
            "std::tuple",
            "std::collections::",
            "alloc::vec::",
            "alloc::collections::",
            "alloc::raw_vec::",
            "core::slice::",
            "core::iter::",
            "core::hash::",
            "std::hash::",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn family(name: &str, module: &str, kind: FrameKind) -> Option<String> {
        Family::built_in(name, module, kind).map(|family| family.name().to_owned())
    }

    #[test]
    fn members_of_a_family_are_recognised_by_name_or_library() {
        let runtime = |name: &str| family(name, "libc.so.6", FrameKind::Runtime);
        assert_eq!(runtime("__memmove_avx_unaligned_erms").as_deref(), Some("memory copies"));
        assert_eq!(
            runtime("std::vector<int, std::allocator<int> >::push_back(int const&)").as_deref(),
            Some("containers")
        );
        assert_eq!(runtime("std::__cxx11::basic_string<char>::append(char const*)").as_deref(), Some("strings"));
        assert_eq!(runtime("<alloc::vec::Vec<T> as core::ops::Drop>::drop").as_deref(), Some("containers"));
        assert_eq!(runtime("pthread_mutex_lock").as_deref(), Some("locks"));
        assert_eq!(runtime("___pthread_mutex_lock").as_deref(), Some("locks"));
        assert_eq!(runtime("__vfprintf_internal").as_deref(), Some("text formatting"));
        assert_eq!(
            family("do_lookup_x", "ld-linux-x86-64.so.2", FrameKind::Runtime).as_deref(),
            Some("dynamic linking")
        );
        assert_eq!(family("malloc", "libc.so.6", FrameKind::Allocator).as_deref(), Some("allocation"));
        assert_eq!(family("inflate_fast", "libz.so.1", FrameKind::Native).as_deref(), Some("decompression"));
        assert_eq!(family("do_syscall_64", "[kernel.kallsyms]", FrameKind::Kernel).as_deref(), Some("kernel"));
    }

    #[test]
    fn other_code_is_of_no_family() {
        assert_eq!(family("stbi__jpeg_huff_decode", "sim", FrameKind::Native).as_deref(), Some("image decoding"));
        assert_eq!(family("dart::step", "libdart.so", FrameKind::Native), None);
        assert_eq!(family("memcpy_fast", "sim", FrameKind::Native), None, "only the run-time library's");
    }
}
