//! Qualified names of functions.
//!
//! A function that the linker sees has its mangled name. Others (static functions, functions in anonymous namespaces,
//! lambdas, and inlined copies of these) have only their last name. The scopes around their first declaration give the
//! rest: `gz::sim::(anonymous namespace)::Merge`, `World::Load::{lambda#2}::operator()`. The number counts the lambdas
//! of the enclosing function in the order of the debug information.

use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, DebugInfoOffset, DebuggingInformationEntry, UnitHeader, UnitOffset};
use rustc_hash::FxHashMap;

use super::unit::{Entry, Scopes, is_type};
use super::units::header_holding;
use super::{Dwarf, Slice, Unit};
use crate::demangle;
use crate::texts::Texts;

/// Limit of links from a function to its first declaration, scopes included. Real chains have about ten links; damaged
/// ones can be circular.
const MAX_LINKS: usize = 64;

/// The file of an entry: the main one, or the supplement that `dwz` made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Main,
    Supplement,
}

type Key = (Part, DebugInfoOffset);
type Die<'data> = DebuggingInformationEntry<Slice<'data>>;

/// The names found so far in one file, and the units read for them.
#[derive(Default)]
pub(super) struct FunctionNames<'data> {
    functions: FxHashMap<Key, Option<Arc<str>>>,
    scopes: FxHashMap<Key, Arc<str>>,
    referred: FxHashMap<Key, Rc<Unit<'data>>>,
    trees: FxHashMap<Key, Rc<Scopes>>,
    supplement_headers: Vec<UnitHeader<Slice<'data>>>,
}

/// Names functions of one unit.
pub(super) struct Naming<'n, 'a, 'data> {
    names: &'n mut FunctionNames<'data>,
    entry: Entry<'a, 'data>,
    scopes: Rc<Scopes>,
}

/// An entry of a unit.
#[derive(Clone)]
struct Place<'data> {
    part: Part,
    unit: Rc<Unit<'data>>,
    offset: UnitOffset,
}

impl<'data> Place<'data> {
    fn key(&self) -> Key {
        let (part, unit) = self.unit_key();
        (part, DebugInfoOffset(unit.0.saturating_add(self.offset.0)))
    }

    fn unit_key(&self) -> Key {
        (self.part, self.unit.header.debug_info_offset().unwrap_or(DebugInfoOffset(0)))
    }

    fn die(&self) -> Option<Die<'data>> {
        self.unit.entry(self.offset).ok()
    }

    fn at(&self, offset: UnitOffset) -> Self {
        Self { offset, ..self.clone() }
    }
}

fn join(texts: &mut Texts, around: &str, name: &str) -> Arc<str> {
    match around {
        "" => texts.intern(name),
        around => texts.intern(&format!("{around}::{name}")),
    }
}

impl<'data> FunctionNames<'data> {
    /// Starts with a unit whose scopes are known.
    pub(super) fn in_unit<'n, 'a>(&'n mut self, entry: Entry<'a, 'data>, scopes: Scopes) -> Naming<'n, 'a, 'data> {
        Naming { names: self, entry, scopes: Rc::new(scopes) }
    }
}

impl<'data> Naming<'_, '_, 'data> {
    /// The name of the function at `offset`, if it has one.
    pub(super) fn function(&mut self, offset: UnitOffset, texts: &mut Texts) -> Option<Arc<str>> {
        let place = Place { part: Part::Main, unit: self.entry.unit.clone(), offset };
        self.function_at(place, MAX_LINKS, texts)
    }

    fn function_at(&mut self, place: Place<'data>, links: usize, texts: &mut Texts) -> Option<Arc<str>> {
        let key = place.key();
        if let Some(name) = self.names.functions.get(&key) {
            return name.clone();
        }
        let name = self.find_function(place, links, texts);
        self.names.functions.insert(key, name.clone());
        name
    }

    /// Follows instances to their abstract instance and definitions to their declaration until one has a mangled name.
    fn find_function(&mut self, mut place: Place<'data>, mut links: usize, texts: &mut Texts) -> Option<Arc<str>> {
        let mut last_name = None;
        loop {
            links = links.checked_sub(1)?;
            let die = place.die()?;
            let linkage =
                die.attr_value(gimli::DW_AT_linkage_name).or_else(|| die.attr_value(gimli::DW_AT_MIPS_linkage_name));
            if let Some(linkage) = linkage.and_then(|value| self.text(&place, value)) {
                return Some(texts.intern(&demangle(&linkage)));
            }
            last_name = last_name.or_else(|| self.text(&place, die.attr_value(gimli::DW_AT_name)?));
            let origin =
                die.attr_value(gimli::DW_AT_abstract_origin).or_else(|| die.attr_value(gimli::DW_AT_specification));
            let Some(origin) = origin else { break };
            place = self.refer(&place, origin)?;
        }
        let name = last_name?;
        let around = self.path_around(&place, links, texts)?;
        Some(join(texts, &around, &name))
    }

    /// The qualified name of the scope that contains an entry; empty at the top level.
    fn path_around(&mut self, place: &Place<'data>, links: usize, texts: &mut Texts) -> Option<Arc<str>> {
        let tree = self.tree(place)?;
        let parent = tree.index_of(place.offset).and_then(|index| tree.get(index).parent);
        match parent {
            Some(parent) => self.path_of(place, &tree, parent as usize, links.checked_sub(1)?, texts),
            None => Some(Arc::default()),
        }
    }

    /// The qualified name of a scope.
    fn path_of(
        &mut self,
        place: &Place<'data>,
        tree: &Scopes,
        index: usize,
        links: usize,
        texts: &mut Texts,
    ) -> Option<Arc<str>> {
        let scope = tree.get(index);
        let place = place.at(scope.offset);
        let key = place.key();
        if let Some(path) = self.names.scopes.get(&key) {
            return Some(path.clone());
        }
        let path = match scope.tag {
            gimli::DW_TAG_subprogram => self.function_at(place, links, texts)?,
            tag if is_type(tag) => self.type_path(&place, tree, index, links, texts)?,
            _ => {
                let die = place.die()?;
                let name = die.attr_value(gimli::DW_AT_name).and_then(|value| self.text(&place, value));
                let around = self.path_around(&place, links, texts)?;
                join(texts, &around, name.as_deref().unwrap_or("(anonymous namespace)"))
            }
        };
        self.names.scopes.insert(key, path.clone());
        Some(path)
    }

    fn type_path(
        &mut self,
        place: &Place<'data>,
        tree: &Scopes,
        index: usize,
        links: usize,
        texts: &mut Texts,
    ) -> Option<Arc<str>> {
        let die = place.die()?;
        // A nested type that is defined outside its enclosing type.
        if let Some(declaration) = die.attr_value(gimli::DW_AT_specification) {
            let declaration = self.refer(place, declaration)?;
            let tree = self.tree(&declaration)?;
            let index = tree.index_of(declaration.offset)?;
            return self.path_of(&declaration, &tree, index, links.checked_sub(1)?, texts);
        }
        let name = match die.attr_value(gimli::DW_AT_name) {
            Some(name) => self.text(place, name)?,
            None => self.nameless_type(place, tree, index),
        };
        let around = self.path_around(place, links, texts)?;
        Some(join(texts, &around, &name))
    }

    /// The name of a lambda or another unnamed type: its number among the unnamed types of the same scope.
    fn nameless_type(&self, place: &Place<'data>, tree: &Scopes, index: usize) -> String {
        let die_at = |offset| place.at(offset).die();
        let is_nameless = |offset| die_at(offset).is_some_and(|die| die.attr_value(gimli::DW_AT_name).is_none());
        let scope = tree.get(index);
        let before = tree.inside(scope.parent).take_while(|other| other.offset < scope.offset);
        let number = 1 + before.filter(|other| is_type(other.tag) && is_nameless(other.offset)).count();
        let is_call = |offset| {
            let name = die_at(offset).and_then(|die| self.text(place, die.attr_value(gimli::DW_AT_name)?));
            name.is_some_and(|name| name.starts_with("operator()"))
        };
        let own = u32::try_from(index).ok();
        match tree.inside(own).any(|member| is_call(member.offset)) {
            true => format!("{{lambda#{number}}}"),
            false => format!("{{unnamed type#{number}}}"),
        }
    }

    fn dwarf(&self, part: Part) -> &Dwarf<'data> {
        match part {
            Part::Main => self.entry.dwarf,
            Part::Supplement => self.entry.dwarf.sup().unwrap_or(self.entry.dwarf),
        }
    }

    fn text(&self, place: &Place<'data>, value: AttributeValue<Slice<'data>>) -> Option<String> {
        let text = self.dwarf(place.part).attr_string(&place.unit, value).ok()?;
        (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
    }

    fn refer(&mut self, from: &Place<'data>, to: AttributeValue<Slice<'data>>) -> Option<Place<'data>> {
        match to {
            AttributeValue::UnitRef(offset) => Some(from.at(offset)),
            AttributeValue::DebugInfoRef(offset) => self.place(from.part, offset),
            AttributeValue::DebugInfoRefSup(offset) => {
                self.entry.dwarf.sup()?;
                self.place(Part::Supplement, offset)
            }
            _ => None,
        }
    }

    fn place(&mut self, part: Part, offset: DebugInfoOffset) -> Option<Place<'data>> {
        let header = match part {
            Part::Main => header_holding(self.entry.headers, offset)?,
            Part::Supplement => self.supplement_header(offset)?,
        };
        let unit_offset = offset.to_unit_offset(&header)?;
        if part == Part::Main && header.offset() == self.entry.unit.header.offset() {
            return Some(Place { part, unit: self.entry.unit.clone(), offset: unit_offset });
        }
        let key = (part, header.debug_info_offset()?);
        let unit = match self.names.referred.get(&key) {
            Some(unit) => unit.clone(),
            None => Rc::new(self.dwarf(part).unit(header).ok()?),
        };
        self.names.referred.insert(key, unit.clone());
        Some(Place { part, unit, offset: unit_offset })
    }

    fn supplement_header(&mut self, offset: DebugInfoOffset) -> Option<UnitHeader<Slice<'data>>> {
        if self.names.supplement_headers.is_empty() {
            let mut headers = self.entry.dwarf.sup()?.units();
            while let Ok(Some(header)) = headers.next() {
                self.names.supplement_headers.push(header);
            }
        }
        header_holding(&self.names.supplement_headers, offset)
    }

    fn tree(&mut self, place: &Place<'data>) -> Option<Rc<Scopes>> {
        if place.part == Part::Main && Rc::ptr_eq(&place.unit, self.entry.unit) {
            return Some(self.scopes.clone());
        }
        let key = place.unit_key();
        if let Some(tree) = self.names.trees.get(&key) {
            return Some(tree.clone());
        }
        let tree = Rc::new(Scopes::of(&place.unit).ok()?);
        self.names.trees.insert(key, tree.clone());
        Some(tree)
    }
}
