//! [Eclipse Cyclone DDS](https://cyclonedds.io) instead of the simulator's own middleware: a participant with readers,
//! writers, wait sets and listeners, by way of the shim, which is loaded from memory. If the program was built without it,
//! a participant cannot be created.

pub mod error;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Write as _;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use libloading::Library;

use self::error::{DdsError, Token};
use super::message::{Header, Message, Payload};
use super::qos::{History, Listener, Qos, Reliability};

/// Empty in a program that was built without the middleware.
static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cyclonedds_shim.so"));

/// Whether the program was built with the middleware.
pub const IS_BUILT: bool = !SHIM.is_empty();

/// A number that Cyclone DDS knows an entity by.
type Entity = i32;

/// Longest time for readers and writers to match.
const MATCHING_S: u64 = 10;

macro_rules! shim {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of `shim.c`.
        struct Shim {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Shim {
            fn of(library: &'static Library) -> Result<Self, libloading::Error> {
                // SAFETY: the library is the one that was built from `shim.c`, where these functions are so.
                unsafe { Ok(Self { $($name: *library.get(concat!("ground_", stringify!($name)))?,)* }) }
            }
        }
    };
}

shim! {
    participant: fn(u32) -> Entity;
    delete_all: fn();
    delete: fn(Entity);
    error: fn(i32) -> *const c_char;
    topic: fn(Entity, *const c_char) -> Entity;
    reader: fn(Entity, Entity, i32, i32) -> Entity;
    writer: fn(Entity, Entity, i32) -> Entity;
    matched: fn(Entity) -> i32;
    write: fn(Entity, *const u64, u32, *const u8, u32) -> i32;
    take: fn(Entity, *mut *mut c_void, *mut u64, *mut u32, *mut *const u8, *mut u32) -> i32;
    give_back: fn(Entity, *mut c_void);
    listen: fn(Entity, extern "C" fn(Entity, *mut c_void), *mut c_void) -> i32;
    read_condition: fn(Entity) -> Entity;
    wait_set: fn(Entity) -> Entity;
    guard: fn(Entity) -> Entity;
    set_guard: fn(Entity, i32) -> i32;
    attach: fn(Entity, Entity, Token) -> i32;
    wait: fn(Entity, *mut Token, usize, i64) -> i32;
}

/// Loads the shim, once for all.
fn shim() -> Result<&'static Shim, DdsError> {
    static LOADED: OnceLock<Result<Shim, String>> = OnceLock::new();
    if !IS_BUILT {
        return Err(DdsError::NotBuilt);
    }
    let loaded = LOADED.get_or_init(|| load().map_err(|error| error.to_string()));
    loaded.as_ref().map_err(|error| DdsError::Load(error.clone()))
}

fn load() -> Result<Shim, Box<dyn std::error::Error>> {
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"cyclonedds_shim.so".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the descriptor was made just now and belongs to nobody else.
    let mut file = unsafe { std::fs::File::from_raw_fd(file) };
    file.write_all(SHIM)?;
    // SAFETY: what it and the middleware do when they are loaded is what all users of these libraries accept.
    let library = unsafe { Library::new(format!("/proc/self/fd/{}", file.as_raw_fd()))? };
    // Threads of the middleware may be in it until the process ends.
    Ok(Shim::of(Box::leak(Box::new(library)))?)
}

/// The only participant of a domain. The domain's number depends on the process id; traffic stays on the loopback interface.
pub struct Participant {
    shim: &'static Shim,
    entity: Entity,
    topics: Mutex<HashMap<String, Entity>>,
}

/// Domains whose ports are below the ephemeral ports.
const DOMAINS: u32 = 200;

impl Participant {
    /// Joins.
    ///
    /// # Errors
    /// If the program was built without the middleware, it cannot be loaded, or refuses.
    pub fn new() -> Result<Arc<Self>, DdsError> {
        let shim = shim()?;
        let domain = 1 + std::process::id() % DOMAINS;
        // SAFETY: it takes a number.
        let entity = made(shim, "join a domain", unsafe { (shim.participant)(domain) })?;
        Ok(Arc::new(Self { shim, entity, topics: Mutex::default() }))
    }

    /// Reads a topic.
    ///
    /// # Errors
    /// If the middleware refuses.
    pub fn reader(self: &Arc<Self>, topic: &str, qos: Qos) -> Result<Reader, DdsError> {
        let topic = self.topic(topic)?;
        let depth = match qos.history {
            History::KeepAll => 0,
            History::KeepLast(depth) => i32::try_from(depth.max(1)).unwrap_or(i32::MAX),
        };
        let reliable = i32::from(qos.reliability == Reliability::Reliable);
        // SAFETY: both entities are of this participant, which lives.
        let entity = unsafe { (self.shim.reader)(self.entity, topic, depth, reliable) };
        let entity = made(self.shim, "make a reader", entity)?;
        // SAFETY: the reader was made just now.
        let condition = made(self.shim, "make a read condition", unsafe { (self.shim.read_condition)(entity) })?;
        let (attached, listener) = (AtomicBool::new(false), Mutex::new(None));
        Ok(Reader { participant: self.clone(), entity, condition, attached, listener })
    }

    /// Writes a topic. Returns when as many readers are matched.
    ///
    /// # Errors
    /// If the middleware refuses, or they are not.
    pub fn writer(self: &Arc<Self>, topic: &str, reliability: Reliability, readers: usize) -> Result<Writer, DdsError> {
        let topic = self.topic(topic)?;
        let reliable = i32::from(reliability == Reliability::Reliable);
        // SAFETY: both entities are of this participant, which lives.
        let entity = made(self.shim, "make a writer", unsafe { (self.shim.writer)(self.entity, topic, reliable) })?;
        let began = Instant::now();
        // SAFETY: the writer was made just now.
        while (unsafe { (self.shim.matched)(entity) }.max(0) as usize) < readers {
            if began.elapsed() > Duration::from_secs(MATCHING_S) {
                return Err(DdsError::NotMatched(MATCHING_S));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Writer { participant: self.clone(), entity })
    }

    /// Makes a wait set.
    ///
    /// # Errors
    /// If the middleware refuses.
    pub fn wait_set(self: &Arc<Self>) -> Result<WaitSet, DdsError> {
        // SAFETY: the participant lives.
        let [entity, guard] = unsafe { [(self.shim.wait_set)(self.entity), (self.shim.guard)(self.entity)] };
        let entity = made(self.shim, "make a wait set", entity)?;
        let guard = made(self.shim, "make a guard condition", guard)?;
        // SAFETY: both were made just now.
        made(self.shim, "attach a guard condition", unsafe { (self.shim.attach)(entity, guard, GUARD) })?;
        Ok(WaitSet { participant: self.clone(), entity, guard })
    }

    fn topic(&self, name: &str) -> Result<Entity, DdsError> {
        let mut topics = lock!(self.topics);
        if let Some(topic) = topics.get(name) {
            return Ok(*topic);
        }
        let refused = |why: &str| DdsError::Refused { what: "make a topic", why: format!("`{name}`: {why}") };
        // Names of DDS begin with a letter: ROS puts `rt` before those of its topics.
        let c_name = CString::new(format!("rt{name}")).map_err(|_| refused("a name has no zero in it"))?;
        // SAFETY: the name is a C string, and the participant lives.
        let topic = made(self.shim, "make a topic", unsafe { (self.shim.topic)(self.entity, c_name.as_ptr()) })?;
        topics.insert(name.to_owned(), topic);
        Ok(topic)
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // SAFETY: readers, writers and wait sets keep the participant alive, so that none is left.
        unsafe { (self.shim.delete_all)() };
    }
}

fn made(shim: &Shim, what: &'static str, entity: Entity) -> Result<Entity, DdsError> {
    if entity >= 0 {
        return Ok(entity);
    }
    // SAFETY: it returns constant text for every number.
    let why = unsafe { CStr::from_ptr((shim.error)(entity)) };
    Err(DdsError::Refused { what, why: why.to_string_lossy().into_owned() })
}

/// A reader of the middleware.
pub struct Reader {
    participant: Arc<Participant>,
    entity: Entity,
    condition: Entity,
    attached: AtomicBool,
    /// What the middleware calls has to stay where it is.
    listener: Mutex<Option<Box<Listener>>>,
}

extern "C" fn call_listener(_reader: Entity, listener: *mut c_void) {
    // SAFETY: it is the listener that the reader keeps until its participant, and with it all calls, is gone.
    let listener = unsafe { &*listener.cast::<Listener>() };
    listener(1);
}

impl Reader {
    /// Takes the oldest sample.
    pub fn take(&self) -> Option<Message> {
        let shim = self.participant.shim;
        let (mut loan, mut header, mut writer) = (std::ptr::null_mut(), [0; 3], 0);
        let (mut payload, mut length) = (std::ptr::null(), 0);
        loop {
            // SAFETY: the reader lives, and all pointers are to what lives through the call.
            let taken = unsafe {
                (shim.take)(self.entity, &mut loan, header.as_mut_ptr(), &mut writer, &mut payload, &mut length)
            };
            if taken <= 0 {
                return None;
            }
            let bytes = match length {
                0 => Vec::new(),
                // SAFETY: the middleware lends as many bytes until they are given back.
                length => unsafe { std::slice::from_raw_parts(payload, length as usize) }.to_vec(),
            };
            // SAFETY: it was lent just now.
            unsafe { (shim.give_back)(self.entity, loan) };
            // Some samples say only that a writer is gone.
            if taken == 1 {
                let [number, stamp_ns, period_ns] = header;
                let header = Header { writer, number, stamp_ns, period_ns };
                return Some(Message { header, payload: Payload::Bytes(bytes) });
            }
        }
    }

    /// Has `listener` called at every delivery from now on, on the thread that delivers.
    pub fn listen(&self, listener: Listener) {
        let mut kept = lock!(self.listener);
        let listener = kept.insert(Box::new(listener));
        let context = std::ptr::from_mut::<Listener>(listener).cast();
        // SAFETY: the listener stays in its box for as long as the reader is there.
        unsafe { (self.participant.shim.listen)(self.entity, call_listener, context) };
    }

    /// Attaches it to a wait set for good, as `rmw_cyclonedds` does for as long as what is waited for stays the same.
    pub fn attach(&self, wait_set: &WaitSet) {
        if !self.attached.swap(true, Ordering::Relaxed) {
            // SAFETY: both live.
            unsafe { (self.participant.shim.attach)(wait_set.entity, self.condition, self.token()) };
        }
    }

    /// Names it in what a wait set found ready.
    pub fn token(&self) -> Token {
        Token::try_from(self.entity).expect("a token is wider than an entity")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: the reader lives. When this returns, its listener is called no more.
        unsafe { (self.participant.shim.delete)(self.entity) };
    }
}

/// A writer of the middleware.
pub struct Writer {
    participant: Arc<Participant>,
    entity: Entity,
}

impl Writer {
    /// Writes a message. All its elements go as bytes.
    pub fn write(&self, message: &Message) {
        let Header { writer, number, stamp_ns, period_ns } = message.header;
        let mut buffer = Vec::new();
        let bytes = match &message.payload {
            Payload::Bytes(bytes) => bytes,
            other => {
                other.write(&mut buffer);
                &buffer
            }
        };
        let header = [number, stamp_ns, period_ns];
        // SAFETY: the writer lives, and the pointers are to what lives through the call. What the middleware has no room
        // for is lost, as on any network.
        unsafe {
            (self.participant.shim.write)(self.entity, header.as_ptr(), writer, bytes.as_ptr(), bytes.len() as u32)
        };
    }
}

/// A wait set of the middleware, and a guard condition in it.
pub struct WaitSet {
    participant: Arc<Participant>,
    entity: Entity,
    guard: Entity,
}

/// Names the guard condition. Entities of readers are positive.
const GUARD: Token = 0;

impl WaitSet {
    /// Waits until anything attached is ready, or it is interrupted, or for as long as `timeout` says; `None` is for ever.
    /// Returns which readers are ready, in order.
    pub fn wait(&self, timeout: Option<Duration>) -> Vec<Token> {
        let shim = self.participant.shim;
        let timeout_ns = timeout.map_or(-1, |timeout| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
        let mut tokens = vec![0; 64];
        loop {
            // SAFETY: the wait set lives, and there is room for as many.
            let ready = unsafe { (shim.wait)(self.entity, tokens.as_mut_ptr(), tokens.len(), timeout_ns) };
            let ready = usize::try_from(ready).unwrap_or(0);
            if ready > tokens.len() {
                tokens.resize(ready, 0);
                continue;
            }
            tokens.truncate(ready);
            if tokens.contains(&GUARD) {
                // SAFETY: the guard condition lives.
                unsafe { (shim.set_guard)(self.guard, 0) };
            }
            tokens.sort_unstable();
            return tokens;
        }
    }

    /// Ends a wait, or the next if there is none.
    pub fn interrupt(&self) {
        // SAFETY: the guard condition lives.
        unsafe { (self.participant.shim.set_guard)(self.guard, 1) };
    }
}
