//! The modules of a crate import each other without circles, so that each can be understood with those below it.
//!
//! A module is a file. It imports the files that define what its paths name. Re-exports are followed, and are no imports
//! themselves. A module may use what the modules that contain it define, and tests may use anything.
//! `cargo modules --acyclic` does the same with types, but compiles rust-analyzer first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemMod, ItemUse, Macro, Token, UseTree, VisRestricted, Visibility};

/// Segments of a path, as written or from the root of the crate.
type Segments = Vec<String>;

/// The files that each file imports, with the paths that name them.
type Imports = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

#[derive(Default)]
struct Module {
    file: PathBuf,
    items: HashSet<String>,
    /// What `use` makes available, by name; `*` is not a name.
    aliases: HashMap<String, Segments>,
    /// Modules whose items are all available.
    globs: Vec<Segments>,
    /// Paths in the code.
    paths: Vec<Segments>,
}

/// The modules of a crate, by their paths.
#[derive(Default)]
struct Crate(BTreeMap<Segments, Module>);

impl Crate {
    fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(root, root.parent().expect("a file lies in a folder"), Vec::new());
        modules
    }

    /// Adds the module of a file, whose submodules lie in `folder`.
    fn read_file(&mut self, file: &Path, folder: &Path, path: Segments) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(parsed.items, file, folder, path);
    }

    fn add(&mut self, items: Vec<Item>, file: &Path, folder: &Path, path: Segments) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items {
            if let Item::Mod(ItemMod { attrs, ident, content, .. }) = item {
                if is_test(&attrs) {
                    continue;
                }
                let name = ident.to_string();
                let (inner, path) = (folder.join(&name), [path.clone(), vec![name.clone()]].concat());
                match content {
                    Some((_, items)) => self.add(items, file, &inner, path),
                    None => {
                        let files = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
                        let file = files.iter().find(|file| file.exists()).expect("a module has a file");
                        self.read_file(file, &inner, path);
                    }
                }
            } else {
                module.visit_item(&item);
            }
        }
        self.0.insert(path, module);
    }

    /// The file that defines what a path names, if it is of this crate.
    fn resolve(&self, written: &[String], module: &[String], depth: usize) -> Option<&Path> {
        let (first, rest) = written.split_first()?;
        let parent = || module.split_last().map_or(&[][..], |(_, parent)| parent);
        let (mut at, rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (module.to_vec(), rest),
            "super" if rest.first().is_some_and(|next| next == "super") => return self.resolve(rest, parent(), depth),
            "super" => (parent().to_vec(), rest),
            name => {
                let child = self.0.contains_key(&[module, &[name.to_owned()]].concat());
                (child || self.0[module].aliases.contains_key(name)).then_some(())?;
                (module.to_vec(), written)
            }
        };
        for (index, name) in rest.iter().enumerate() {
            let child = [at.clone(), vec![name.clone()]].concat();
            if self.0.contains_key(&child) {
                at = child;
                continue;
            }
            let here = self.0.get(&at)?;
            if here.items.contains(name) || depth == 0 {
                break;
            }
            if let Some(alias) = here.aliases.get(name) {
                return self.resolve(&[alias, &rest[index + 1..]].concat(), &at, depth - 1);
            }
            let through = |glob: &Segments| self.resolve(&[glob, &rest[index..]].concat(), &at, depth - 1);
            return here.globs.iter().find_map(through).or(Some(&here.file));
        }
        self.0.get(&at).map(|module| module.file.as_path())
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (path, module) in &self.0 {
            for written in &module.paths {
                let outer = (0..=path.len()).map(|length| self.0[&path[..length]].file.as_path());
                let outer: Vec<&Path> = outer.collect();
                if let Some(file) = self.resolve(written, path, 9).filter(|file| !outer.contains(file)) {
                    let named = imports.entry(module.file.clone()).or_default().entry(file.to_owned()).or_default();
                    named.insert(written.join("::"));
                }
            }
        }
        imports
    }
}

/// The imports that belong to circles: those whose file leads back to the importer.
fn circles(imports: &Imports) -> Imports {
    let leads_back = |from: &PathBuf, to: &PathBuf| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![to]);
        while let Some(file) = open.pop() {
            if seen.insert(file) {
                open.extend(imports.get(file).into_iter().flat_map(BTreeMap::keys));
            }
        }
        seen.contains(from)
    };
    let mut circles = imports.clone();
    for (from, imported) in &mut circles {
        imported.retain(|to, _| leads_back(from, to));
    }
    circles.retain(|_, imported| !imported.is_empty());
    circles
}

fn is_test(attributes: &[Attribute]) -> bool {
    let names_test = |list: &syn::MetaList| {
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && condition.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
    };
    attributes.iter().any(|attribute| attribute.meta.require_list().is_ok_and(names_test))
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.items.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_import = matches!(item.vis, Visibility::Inherited);
        self.add_use(&item.tree, &[], is_import);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// `pub(super)` imports nothing.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_macro(&mut self, invocation: &'ast Macro) {
        visit::visit_path(self, &invocation.path);
        if let Ok(arguments) = invocation.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            // The arguments do not live as long as the file, so they have a visitor of their own.
            let mut inner = Module::default();
            arguments.iter().for_each(|argument| inner.visit_expr(argument));
            self.paths.append(&mut inner.paths);
        }
    }
}

impl Module {
    fn add_use(&mut self, tree: &UseTree, prefix: &[String], is_import: bool) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        let (name, target) = match tree {
            UseTree::Path(path) => return self.add_use(&path.tree, &with(&path.ident), is_import),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_use(tree, prefix, is_import));
            }
            UseTree::Glob(_) => (None, prefix.to_vec()),
            UseTree::Name(name) if name.ident == "self" => (prefix.last().cloned(), prefix.to_vec()),
            UseTree::Name(name) => (Some(name.ident.to_string()), with(&name.ident)),
            UseTree::Rename(rename) => (Some(rename.rename.to_string()), with(&rename.ident)),
        };
        if is_import {
            self.paths.push(target.clone());
        }
        match name {
            // A name that stands for itself is another crate or a submodule.
            Some(name) if target == [name.clone()] => {}
            Some(name) => drop(self.aliases.insert(name, target)),
            None => self.globs.push(target),
        }
    }
}

/// The root files of all programs and libraries below a folder of sources.
fn roots(sources: &Path) -> Vec<PathBuf> {
    let mut roots = ["lib.rs", "main.rs"].map(|name| sources.join(name)).to_vec();
    for entry in fs::read_dir(sources.join("bin")).into_iter().flatten().flatten() {
        roots.extend([entry.path(), entry.path().join("main.rs")].into_iter().filter(|path| path.is_file()));
    }
    roots.retain(|root| root.exists());
    roots
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("two folders up");
    let mut sources = vec![repository.join("ground/src"), repository.join("marks/rust/src")];
    let crates = fs::read_dir(repository.join("crates")).expect("the crates").flatten();
    sources.extend(crates.map(|entry| entry.path().join("src")));
    let mut found = String::new();
    for root in sources.iter().flat_map(|sources| roots(sources)) {
        let imports = Crate::read(&root).imports();
        for (from, to) in circles(&imports) {
            for (to, names) in to {
                let inside = |file: &Path| file.strip_prefix(&repository).expect("a file of it").display().to_string();
                let names: Vec<String> = names.into_iter().collect();
                found += &format!("\n{} -> {}: {}", inside(&from), inside(&to), names.join(", "));
            }
        }
    }
    assert!(found.is_empty(), "move what both need into a module of its own:{found}");
}

#[test]
fn a_circle_is_found_through_re_exports() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let lib = file("lib.rs", "mod a; mod b; mod leaf; pub use b::Thing; pub use leaf::Leaf;");
    file("a.rs", "use crate::Thing; use crate::leaf::{self, Leaf as L}; fn f(_: Thing, _: L) {} pub struct Item;");
    file("b.rs", "mod inner; pub struct Thing; fn f() { vec![inner::g()]; }");
    file("b/inner.rs", "pub fn g(_: super::Thing) -> super::super::a::Item { todo!() }");
    file("leaf.rs", "pub struct Leaf; #[cfg(test)] mod tests { use crate::a::Item; }");
    let imports = Crate::read(&lib).imports();
    let found = circles(&imports);
    let names: Vec<String> =
        found.keys().map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["a", "inner", "b"]);
}
