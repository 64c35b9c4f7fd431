//! The fields of an event in text: `NAME=VALUE` as the kernel writes them, or the short forms of trace-cmd.

use crate::import::ftrace::event::{Fields, Kind};
use crate::import::text::number;

/// A state that means that a thread blocks (`TASK_INTERRUPTIBLE`); 0 means that it can go on.
const BLOCKED: i64 = 1;

/// The fields that a kind needs.
pub fn fields(kind: Kind, text: &[u8]) -> Fields<'_> {
    match kind {
        Kind::Switch => switch(text).or_else(|| short_switch(text)).unwrap_or_default(),
        Kind::Waking => with(decimal(text, b"pid=").or_else(|| Some(short_task(text)?.1)), || {
            value(text, b"comm=").or_else(|| Some(short_task(text)?.0))
        }),
        Kind::Fork => with(decimal(text, b"child_pid="), || value(text, b"child_comm=")),
        Kind::NewTask => {
            let mut fields = with(decimal(text, b"pid="), || value(text, b"comm="));
            let flags = word(text, b"clone_flags=").and_then(|flags| std::str::from_utf8(flags).ok());
            fields.numbers[1] = flags.and_then(|flags| i64::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
            fields
        }
        Kind::Exec => with(decimal(text, b"pid="), || value(text, b"filename=")),
        Kind::Exit => with(decimal(text, b"pid="), || None),
        Kind::Rename => with(decimal(text, b"pid="), || value(text, b"newcomm=")),
        Kind::Frequency => {
            Fields { numbers: [decimal(text, b"cpu_id="), decimal(text, b"state="), None], ..Fields::default() }
        }
        Kind::Marker | Kind::FunctionEntry | Kind::FunctionExit => Fields::default(),
    }
}

fn with<'a>(id: Option<i64>, name: impl FnOnce() -> Option<&'a [u8]>) -> Fields<'a> {
    Fields { numbers: [id, None, None], texts: [id.and_then(|_| name()), None] }
}

fn switch(text: &[u8]) -> Option<Fields<'_>> {
    let state = state(word(text, b"prev_state=")?);
    Some(Fields {
        numbers: [decimal(text, b"prev_pid="), Some(state), decimal(text, b"next_pid=")],
        texts: [value(text, b"prev_comm="), value(text, b"next_comm=")],
    })
}

/// `bash:12 [120] S ==> git:13 [120]`
fn short_switch(text: &[u8]) -> Option<Fields<'_>> {
    let at = memchr::memmem::find(text, b" ==> ")?;
    let (before, next) = (text[..at].trim_ascii(), text[at + 5..].trim_ascii());
    let state_at = memchr::memrchr(b' ', before)?;
    let (prev, next) = (short_task(&before[..state_at])?, short_task(next)?);
    let state = state(&before[state_at + 1..]);
    Some(Fields { numbers: [Some(prev.1), Some(state), Some(next.1)], texts: [Some(prev.0), Some(next.0)] })
}

/// `bash:12 [120] ...`: the name may have colons and spaces.
fn short_task(text: &[u8]) -> Option<(&[u8], i64)> {
    let at = memchr::memmem::find(text, b" [")?;
    let task = &text[..at];
    let colon = memchr::memrchr(b':', task)?;
    Some((&task[..colon], i64::try_from(number(&task[colon + 1..])?).ok()?))
}

/// `R` and `R+` can go on; all others block.
fn state(text: &[u8]) -> i64 {
    if text.first() == Some(&b'R') { 0 } else { BLOCKED }
}

/// What follows a name that starts a word.
fn after<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let starts_word = |at: &usize| at.checked_sub(1).is_none_or(|before| text[before] == b' ');
    memchr::memmem::find_iter(text, name).find(starts_word).map(|at| &text[at + name.len()..])
}

/// The value up to a space.
fn word<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    after(text, name)?.split(|&byte| byte == b' ').next()
}

fn decimal(text: &[u8], name: &[u8]) -> Option<i64> {
    i64::try_from(number(word(text, name)?)?).ok()
}

/// The value up to the next name. It may have spaces.
fn value<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = after(text, name)?;
    let is_name = |word: &[u8]| {
        let length = word.iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_').count();
        length > 0 && word.get(length) == Some(&b'=')
    };
    let end = memchr::memchr_iter(b' ', rest).find(|&at| is_name(&rest[at + 1..])).unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_switch_have_the_same_fields() {
        let long =
            b"prev_comm=a b=c prev_pid=12 prev_prio=120 prev_state=R+ ==> next_comm=git x next_pid=13 next_prio=120";
        let fields = super::fields(Kind::Switch, long);
        assert_eq!(fields.numbers, [Some(12), Some(0), Some(13)]);
        assert_eq!(fields.texts, [Some(&b"a"[..]), Some(b"git x")], "a name that looks like a field ends there");
        let fields = super::fields(Kind::Switch, b"kworker/0:1:12 [120] S ==> swapper/0:0 [120]");
        assert_eq!(fields.numbers, [Some(12), Some(BLOCKED), Some(0)]);
        assert_eq!(fields.texts, [Some(&b"kworker/0:1"[..]), Some(b"swapper/0")]);
    }

    #[test]
    fn other_events_have_their_fields() {
        let read = |kind, text: &'static str| {
            let fields = super::fields(kind, text.as_bytes());
            (
                fields.numbers[0],
                fields.numbers[1],
                fields.texts[0].map(|text| String::from_utf8_lossy(text).into_owned()),
            )
        };
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(read(Kind::Waking, "comm=git x pid=7 prio=120 target_cpu=000"), (Some(7), None, named("git x")));
        assert_eq!(read(Kind::Waking, "git:7 [120] CPU:000"), (Some(7), None, named("git")));
        assert_eq!(read(Kind::Fork, "comm=sh pid=3 child_comm=sh child_pid=4"), (Some(4), None, named("sh")));
        assert_eq!(
            read(Kind::NewTask, "pid=4 comm=sh clone_flags=3d0f00 oom_score_adj=0"),
            (Some(4), Some(0x3d0f00), named("sh"))
        );
        assert_eq!(read(Kind::Frequency, "state=2400000 cpu_id=3"), (Some(3), Some(2_400_000), None));
        assert_eq!(read(Kind::Switch, "nonsense"), (None, None, None));
    }
}
