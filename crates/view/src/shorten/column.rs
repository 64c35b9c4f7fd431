//! The names of one column shortened together, so that names that differ still differ.

use std::collections::HashMap;

use unicode_width::UnicodeWidthStr;

use super::name::{Arguments, Brackets, Parts, without_arguments};
use super::{ELLIPSIS, cut_middle, shorten, take_columns};

/// Shortens the names of a column to at most `columns` columns each. Names that differ still differ, where there is room.
///
/// The least informative part gives way first: default template arguments, other arguments, the return type, then leading
/// namespaces; of functions with their file, as in Python, the file's folders.
pub fn shorten_column(names: &mut [String], columns: usize) {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        groups.entry(shorten_name(name, columns)).or_default().push(index);
    }
    for (short, rows) in groups {
        let mut distinct: Vec<&str> = rows.iter().map(|&row| names[row].as_str()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let shorter: HashMap<String, String> = match distinct.len() {
            1 => HashMap::from([(distinct[0].to_owned(), short)]),
            _ => {
                let owned: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
                let shorter = keep_differences(&owned, columns);
                owned.into_iter().zip(shorter).collect()
            }
        };
        for row in rows {
            names[row].clone_from(&shorter[&names[row]]);
        }
    }
}

/// One name in at most `columns` columns.
fn shorten_name(name: &str, columns: usize) -> String {
    if name.width() <= columns {
        return name.to_owned();
    }
    if let Some(at) = name.find(":/") {
        return shorten_in_file(&name[..at], &name[at + 1..], columns);
    }
    if !name.contains("::") {
        return shorten(name, columns).into_owned();
    }
    let plain = without_defaults(name);
    let shorter = super::trim_brackets(&plain, columns.min(plain.width()));
    if shorter.width() <= columns {
        return shorter;
    }
    let bare = without_arguments(&plain);
    let parts = Parts::of(&bare);
    if bare[parts.qualified..].width() <= columns {
        return bare[parts.qualified..].to_owned();
    }
    let starts = bare[parts.qualified..parts.last_two].match_indices("::").map(|(at, _)| parts.qualified + at + 2);
    let mut without_namespaces = starts.map(|start| format!("{ELLIPSIS}{}", &bare[start..]));
    let fitting = without_namespaces.find(|form| form.width() <= columns);
    fitting.unwrap_or_else(|| cut_class(&bare[parts.last_two..parts.last], &bare[parts.last..], columns))
}

/// A function and its file, `Server.serve:…/sim/queue.py`.
fn shorten_in_file(function: &str, path: &str, columns: usize) -> String {
    let mut ends = path.match_indices('/').skip(1).map(|(at, _)| format!("{function}:{ELLIPSIS}{}", &path[at..]));
    ends.find(|form| form.width() <= columns).unwrap_or_else(|| {
        let bare = format!("{function}:{}", path.rsplit('/').next().unwrap_or(path));
        if bare.width() <= columns { bare } else { cut_middle(&bare, columns) }
    })
}

/// The start of the class and the whole name of the function, `EntityCompo…::each_no_cache`; less if that does not fit.
fn cut_class(class: &str, function: &str, columns: usize) -> String {
    const LEAST_CLASS: usize = 4;
    let left = columns.saturating_sub(function.width() + 1);
    match left.saturating_sub("::".len()) {
        room if room >= LEAST_CLASS && !class.is_empty() => {
            let (class, _) = take_columns(class.trim_end_matches("::").chars(), room);
            format!("{class}{ELLIPSIS}::{function}")
        }
        _ if function.width() < columns => format!("{ELLIPSIS}{function}"),
        _ => cut_middle(function, columns),
    }
}

/// Different names in at most `columns` columns each, with their differences kept.
fn keep_differences(names: &[String], columns: usize) -> Vec<String> {
    let forms: [fn(&str) -> String; 3] =
        [|name| without_parameters(&without_defaults(name)), without_defaults, str::to_owned];
    let written = |form: fn(&str) -> String| -> Vec<String> { names.iter().map(|name| form(name)).collect() };
    let names = forms.map(written).into_iter().find(|names| all_differ(names)).unwrap_or_else(|| names.to_vec());
    let (start, end) = common_ends(&names);
    if let Some(names) = without_common_scope(&names, start, columns) {
        return names;
    }
    const LEAST_HEAD: usize = 6;
    let function = function_after_arguments(&names[0][names[0].len() - end..]).width();
    let whole: Vec<&str> = names.iter().map(|name| &name[start..name.len() - end]).collect();
    // An ellipsis on each side.
    let room = columns.saturating_sub(LEAST_HEAD + function + 2);
    let cut: Vec<&str> = whole.iter().map(|middle| start_of(middle, room)).collect();
    let middles = if all_differ(&cut) { cut } else { whole };
    let widest = middles.iter().map(|middle| middle.width()).max().unwrap_or(0);
    if widest + 2 > columns {
        let mut middles: Vec<String> = middles.into_iter().map(str::to_owned).collect();
        // Shorter by the common ends; without any, there is nothing left to take away.
        match start + end {
            0 => middles.iter_mut().for_each(|middle| *middle = cut_middle(middle, columns)),
            _ => shorten_column(&mut middles, columns),
        }
        return middles;
    }
    let whole = |name: &str| name.width() <= columns;
    let shown = |(name, middle): (&String, &str)| {
        if whole(name) {
            return name.clone();
        }
        let (head, tail) = (&name[..start], &name[name.len() - end..]);
        let room = columns - middle.width() - 2;
        let head_room = room.saturating_sub(function).max(room.min(LEAST_HEAD));
        let head = match head.width() <= head_room + 1 {
            true => head.to_owned(),
            false => format!("{}{ELLIPSIS}", take_columns(head.chars(), head_room).0),
        };
        let tail_room = columns - head.width() - middle.width();
        let tail = match tail.width() <= tail_room {
            true => tail.to_owned(),
            false => {
                let (reversed, _) = take_columns(tail.chars().rev(), tail_room - 1);
                format!("{ELLIPSIS}{}", reversed.chars().rev().collect::<String>())
            }
        };
        format!("{head}{middle}{tail}")
    };
    names.iter().zip(middles).map(shown).collect()
}

/// The names without a return type and as many leading namespaces as let each fit. `start` is the end of what all have in
/// common. `None` if some name does not fit, or two would be equal.
fn without_common_scope(names: &[String], start: usize, columns: usize) -> Option<Vec<String>> {
    let scope = &names[0][..start];
    let scope = &scope[..scope.find(['<', '(']).unwrap_or(start)];
    let ends = |separator: &'static str| scope.match_indices(separator).map(move |(at, _)| at + separator.len());
    let qualified = ends(" ").last().unwrap_or(0);
    let starts = || std::iter::once(qualified).chain(ends("::").filter(|&end| end > qualified));
    let shown = |name: &String| {
        let form = |from: usize| match from == qualified {
            true => name[from..].to_owned(),
            false => format!("{ELLIPSIS}{}", &name[from..]),
        };
        starts().map(form).find(|form| form.width() <= columns)
    };
    names.iter().map(shown).collect::<Option<Vec<_>>>().filter(|names| all_differ(names))
}

/// What follows the last template arguments with their bracket, `>::find`, or the whole if that is the function's name.
fn function_after_arguments(tail: &str) -> &str {
    tail.rfind(">::").map_or(tail, |at| &tail[at..])
}

/// As much of the start as fits.
fn start_of(text: &str, columns: usize) -> &str {
    &text[..take_columns(text.chars(), columns).0.len()]
}

fn all_differ(names: &[impl AsRef<str>]) -> bool {
    let mut sorted: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Bytes of the longest start and end that all names have, without parts of words.
fn common_ends(names: &[String]) -> (usize, usize) {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let first = &names[0];
    let shortest = names.iter().map(String::len).min().unwrap_or(0);
    let common = |bytes: &dyn Fn(&str, usize) -> u8| {
        (0..shortest).take_while(|&at| names.iter().all(|name| bytes(name, at) == bytes(first, at))).count()
    };
    let mut start = common(&|name, at| name.as_bytes()[at]);
    while !first.is_char_boundary(start) || first[..start].ends_with(is_word) {
        start -= 1;
    }
    let mut end = common(&|name, at| name.as_bytes()[name.len() - 1 - at]).min(shortest - start);
    while !first.is_char_boundary(first.len() - end) || first[first.len() - end..].starts_with(is_word) {
        end -= 1;
    }
    (start, end)
}

/// The name without template arguments that follow from others, and without names of library versions.
fn without_defaults(name: &str) -> String {
    const VERSIONS: [(&str, &str); 4] =
        [("std::__cxx11::", "std::"), ("std::__1::", "std::"), ("[abi:cxx11]", ""), ("> >", ">>")];
    const DEFAULTS: [&str; 6] = ["allocator", "default_delete", "char_traits", "less", "hash", "equal_to"];
    let mut plain = name.to_owned();
    for (version, replacement) in VERSIONS {
        while plain.contains(version) {
            plain = plain.replace(version, replacement);
        }
    }
    for default in DEFAULTS {
        let start = format!(", std::{default}<");
        while let Some(at) = plain.find(&start) {
            let Some(close) = closing(&plain, at + start.len() - 1) else { break };
            plain.replace_range(at..=close, "");
        }
    }
    plain.replace("std::basic_string<char>", "std::string")
}

/// The bracket that closes the one at `open`.
fn closing(name: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    name.bytes().enumerate().skip(open).find_map(|(at, byte)| {
        match byte {
            b'<' => depth += 1,
            b'>' if name.as_bytes()[at - 1] != b'-' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The name with `(…)` for its parameter lists.
fn without_parameters(name: &str) -> String {
    let mut bare = name.strip_suffix(" const").unwrap_or(name).to_owned();
    for Brackets { open, close } in Arguments::of(name).parameters.into_iter().rev() {
        if open > 0 && close > open + 1 {
            bare.replace_range(open + 1..close, "…");
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened<const N: usize>(names: [&str; N], columns: usize) -> [String; N] {
        let mut names = names.map(str::to_owned);
        shorten_column(&mut names, columns);
        assert!(names.iter().all(|name| name.width() <= columns), "{names:?}");
        names
    }

    #[test]
    fn names_that_differ_in_their_arguments_still_differ() {
        let deleter =
            |class: &str| format!("std::default_delete<gz::sim::components::{class}>::operator()({class}*) const");
        let names = ["Pose", "WorldPose", "Link", "Joint", "JointVelocity"].map(deleter);
        let names = names.each_ref().map(String::as_str);
        assert_eq!(
            shortened(names, 40),
            [
                "std::default_delet…Pose>::operator()(…)",
                "std::default_…WorldPose>::operator()(…)",
                "std::default_delet…Link>::operator()(…)",
                "std::default_dele…Joint>::operator()(…)",
                "std::defa…JointVelocity>::operator()(…)",
            ]
            .map(str::to_owned)
        );
        for columns in 18..120 {
            assert!(all_differ(&shortened(names, columns)), "{columns}");
        }
    }

    #[test]
    fn names_that_differ_lose_the_return_type_and_namespaces_before_their_own_name() {
        let delete = |class: &str| format!("void gz::utils::detail::DefaultDelete<sdf::v17::{class}::Implementation>");
        let names = ["World", "Sensor", "Joint"].map(delete);
        assert_eq!(
            shortened(names.each_ref().map(String::as_str), 50),
            [
                "…DefaultDelete<sdf::v17::World::Implementation>",
                "…DefaultDelete<sdf::v17::Sensor::Implementation>",
                "…DefaultDelete<sdf::v17::Joint::Implementation>",
            ]
        );
    }

    #[test]
    fn names_that_differ_keep_their_start_and_the_function() {
        let find = |value: &str| {
            format!(
                "std::_Hashtable<unsigned long, std::pair<unsigned long const, {value}>, std::_Traits<false, true>>::find"
            )
        };
        let names = [find("unsigned long"), find("std::unordered_map<unsigned long, unsigned long>")];
        assert_eq!(
            shortened([&names[0], &names[1]], 48),
            ["std::_Hashtable<unsigned l…unsigned long…>::find", "std::_…std::unordered_map<unsigned long,…>::find"]
        );
    }

    #[test]
    fn default_arguments_give_way_first_then_namespaces() {
        let map = "std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >::find(int const&)";
        assert_eq!(shortened([map], 40), ["std::map<int, long>::find(int const&)"]);
        let string =
            "std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >::size()";
        assert_eq!(shortened([string], 40), ["std::vector<std::string>::size()"]);
        let update = "gz::sim::v8::systems::PhysicsPrivate::UpdateSim(gz::sim::EntityComponentManager&)";
        assert_eq!(shortened([update], 60), ["gz::sim::v8::systems::PhysicsPrivate::UpdateSim(gz::…nager&)"]);
        assert_eq!(shortened([update], 46), ["…sim::v8::systems::PhysicsPrivate::UpdateSim"]);
        assert_eq!(shortened([update], 30), ["…PhysicsPrivate::UpdateSim"]);
        assert_eq!(shortened([update], 20), ["PhysicsP…::UpdateSim"]);
        assert_eq!(shortened([update], 12), ["…UpdateSim"]);
        assert_eq!(shortened([update], 8), ["Up…teSim"]);
    }

    #[test]
    fn folders_of_a_functions_file_give_way_before_the_function() {
        let run = "py::Environment.run:/usr/lib/python3/dist-packages/simpy/core.py";
        assert_eq!(shortened([run], 45), ["py::Environment.run:…/simpy/core.py"]);
        assert_eq!(shortened([run], 32), ["py::Environment.run:…/core.py"]);
        assert_eq!(shortened([run], 20), ["py::Env….run:core.py"]);
        let module = "py::<module>:/usr/lib/python3/dist-packages/simpy/__init__.py";
        assert_eq!(shortened([module], 40), ["py::<module>:…/simpy/__init__.py"]);
        let other = "py::Environment.run:/srv/simpy/core.py";
        assert!(all_differ(&shortened([run, other], 45)));
    }

    #[test]
    fn overloads_differ_and_equal_names_stay_equal() {
        let names = ["gz::math::Pose::Set(double, double, double)", "gz::math::Pose::Set(gz::math::Quaternion)"];
        assert!(all_differ(&shortened(names, 30)));
        let same = shortened([names[0], names[0], names[1]], 30);
        assert_eq!(same[0], same[1]);
    }

    #[test]
    fn odd_names_are_shortened_too() {
        let names = [
            "::::::::::::::::",
            "a<b<c<d::::::::::",
            "行列<長い引数>::積算する(値)",
            ">>>::)))((((::::",
            "x::operator->() const",
        ];
        for columns in 1..24 {
            shortened(names, columns);
        }
    }
}
