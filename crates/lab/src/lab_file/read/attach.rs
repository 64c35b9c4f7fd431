//! `attach`: which running processes are recorded.

use super::super::decode::{Field, Problems};
use super::super::settings::Attach;

pub(super) const ATTACH: &str =
    r#"a table of processes, e.g. { name = "*_node" } or { cgroup = "/system.slice/robot.service" }"#;

/// The largest process id of Linux.
const LARGEST_PID: u64 = 1 << 22;

/// The set; `None` if it is wrong.
pub(super) fn read(field: &Field, problems: &mut Problems) -> Option<Attach> {
    let mut fields = field.table(problems, "`attach`".to_owned(), ATTACH)?;
    let mut pids = |key| {
        let one = fields.take(key);
        let pids =
            one.map(|one| one_or_several(&one, problems, |item, problems| item.integer(problems, 1..=LARGEST_PID)));
        pids.unwrap_or_default().into_iter().map(|pid| pid as u32).collect()
    };
    let (pids, trees) = (pids("pid"), pids("tree"));
    let mut texts = |key, expected: &str| {
        let one = fields.take(key);
        let texts = one.map(|one| one_or_several(&one, problems, |item, problems| item.string(problems, expected)));
        texts.unwrap_or_default()
    };
    let cgroups = texts("cgroup", "the path of a cgroup");
    let containers = texts("container", "the name or id of a container");
    let names = fields.take("name").map(|field| {
        one_or_several(&field, problems, |item, problems| {
            let text = item.string(problems, "a glob over names of programs")?;
            let wrong = |error| problems.add(item.span(), format!("{} is not a glob: {error}", item.what));
            glob::Pattern::new(&text).map_err(wrong).ok()
        })
    });
    fields.finish(problems);
    let attach = Attach { pids, trees, names: names.unwrap_or_default(), cgroups, containers };
    if attach == Attach::default() {
        problems.add(field.span(), format!("`attach` names no process; expected {ATTACH}"));
        return None;
    }
    Some(attach)
}

/// The values of a field that holds one, or an array of them.
fn one_or_several<T>(
    field: &Field,
    problems: &mut Problems,
    mut read: impl FnMut(&Field, &mut Problems) -> Option<T>,
) -> Vec<T> {
    if !field.is_array() {
        return read(field, problems).into_iter().collect();
    }
    let items = field.items(problems, "an array").unwrap_or_default();
    items.iter().filter_map(|item| read(item, problems)).collect()
}
