//! The region's store of prims, items and scripts, in an SQLite file.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Params, Row};

use super::physics::MESHES;
use super::scene::{InventoryItem, SceneObjectGroup, SceneObjectPart};
use crate::account::{self, Counter};
use crate::switches::{Switch, Switches};

/// Number of different scripts; items refer to them.
const SCRIPTS: u32 = 8;

/// Prims per group.
const PRIMS_A_GROUP: u32 = 4;

/// The content of a new store.
#[derive(Debug, Clone, Copy)]
pub struct Furnishing {
    /// Number of prims.
    pub prims: u32,
    /// Number of prims with a script, evenly distributed. The rest have a notecard.
    pub scripted: u32,
}

/// An open store.
pub struct RegionStore {
    connection: Connection,
    asks_for_each_prim: bool,
}

impl RegionStore {
    /// Creates a store and fills it.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[inline(never)]
    pub fn create(path: &Path, furnishing: Furnishing, switches: &Switches) -> io::Result<Self> {
        let _timed = account::scope("ground::region::store::RegionStore::create");
        let connection = Connection::open(path).map_err(failed)?;
        let store = Self { connection, asks_for_each_prim: switches.is_slow(Switch::SqlPerPrim) };
        for statement in SCHEMA {
            store.execute(statement, ())?;
        }
        let Furnishing { prims, scripted } = furnishing;
        store.execute(FILL_PRIMS, (prims, PRIMS_A_GROUP, MESHES))?;
        store.execute(FILL_ITEMS, (prims, scripted, SCRIPTS))?;
        for script in 0..SCRIPTS {
            let text = include_str!("cycler.lsl").replace("$SPEED", &format!("0.{}", script + 1));
            store.execute("INSERT INTO scripts VALUES (?1, ?2)", (script, text))?;
        }
        store.execute("COMMIT", ())?;
        Ok(store)
    }

    /// Loads all groups, without items.
    ///
    /// # Errors
    /// If the file cannot be read.
    #[inline(never)]
    pub fn load_objects(&self) -> io::Result<Vec<SceneObjectGroup>> {
        let _timed = account::scope("ground::region::store::RegionStore::load_objects");
        self.all_groups().map_err(failed)
    }

    fn all_groups(&self) -> rusqlite::Result<Vec<SceneObjectGroup>> {
        account::count(Counter::Queries);
        let mut statement = self.connection.prepare(ALL_PRIMS)?;
        let mut rows = statement.query(())?;
        let mut groups: Vec<(u32, SceneObjectGroup)> = Vec::new();
        while let Some(row) = rows.next()? {
            let (position, size) = ([row.get(2)?, row.get(3)?, row.get(4)?], [row.get(5)?, row.get(6)?, row.get(7)?]);
            let part = SceneObjectPart::new(row.get(0)?, row.get(1)?, position, size, row.get(8)?);
            let group = row.get(9)?;
            match groups.last_mut() {
                Some((last, open)) if *last == group => open.parts.push(part),
                _ => groups.push((group, SceneObjectGroup { parts: vec![part] })),
            }
        }
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    /// Loads the items of each prim.
    ///
    /// # Errors
    /// If the file cannot be read.
    #[inline(never)]
    pub fn load_items(&self, groups: &mut [SceneObjectGroup]) -> io::Result<()> {
        let _timed = account::scope("ground::region::store::RegionStore::load_items");
        let parts = groups.iter_mut().flat_map(|group| &mut group.parts);
        if self.asks_for_each_prim {
            for part in parts {
                part.inventory = self.items_of(part.local_id).map_err(failed)?;
            }
            return Ok(());
        }
        let mut items = self.all_items().map_err(failed)?;
        parts.for_each(|part| part.inventory = items.remove(&part.local_id).unwrap_or_default());
        Ok(())
    }

    #[inline(never)]
    fn items_of(&self, local_id: u32) -> rusqlite::Result<Vec<InventoryItem>> {
        account::count(Counter::Queries);
        let mut statement = self.connection.prepare(ITEMS_OF_PRIM)?;
        let mut rows = statement.query((local_id,))?;
        let mut items = Vec::new();
        while let Some(row) = rows.next()? {
            items.push(item(row)?);
        }
        Ok(items)
    }

    fn all_items(&self) -> rusqlite::Result<HashMap<u32, Vec<InventoryItem>>> {
        account::count(Counter::Queries);
        let mut statement = self.connection.prepare(ALL_ITEMS)?;
        let mut rows = statement.query(())?;
        let mut items: HashMap<u32, Vec<InventoryItem>> = HashMap::new();
        while let Some(row) = rows.next()? {
            items.entry(row.get(3)?).or_default().push(item(row)?);
        }
        Ok(items)
    }

    /// Loads the texts of all scripts, by number.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load_scripts(&self) -> io::Result<Vec<Arc<str>>> {
        account::count(Counter::Queries);
        let mut statement = self.connection.prepare(ALL_SCRIPTS).map_err(failed)?;
        let texts = statement.query_map((), |row| row.get::<_, String>(0).map(Arc::from)).map_err(failed)?;
        texts.collect::<rusqlite::Result<_>>().map_err(failed)
    }

    fn execute(&self, sql: &str, parameters: impl Params) -> io::Result<()> {
        account::count(Counter::Queries);
        self.connection.execute(sql, parameters).map_err(failed).map(drop)
    }
}

/// The store is temporary, so it need not survive a crash.
const SCHEMA: [&str; 6] = [
    "PRAGMA synchronous = OFF",
    "BEGIN",
    "CREATE TABLE prims (local_id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, name TEXT NOT NULL, x REAL, y REAL, \
     z REAL, width REAL, depth REAL, height REAL, shape INTEGER NOT NULL)",
    "CREATE TABLE items (item_id INTEGER PRIMARY KEY, prim INTEGER NOT NULL, name TEXT NOT NULL, script INTEGER)",
    "CREATE INDEX items_by_prim ON items (prim)",
    "CREATE TABLE scripts (script INTEGER PRIMARY KEY, text TEXT NOT NULL)",
];

const FILL_PRIMS: &str = "WITH RECURSIVE numbers(i) AS (SELECT 0 WHERE ?1 > 0 UNION ALL SELECT i + 1 FROM numbers WHERE \
     i + 1 < ?1) INSERT INTO prims SELECT i + 1, i / ?2, 'Prim ' || i, (i * 37) % 256 + 0.5, (i * 101) % 256 + 0.25, \
     20.0 + i % 7, 0.5 + i % 5 * 0.25, 0.5 + i % 3 * 0.5, 0.5 + i % 4 * 0.25, i % ?3 FROM numbers";

const FILL_ITEMS: &str = "WITH RECURSIVE numbers(i) AS (SELECT 0 WHERE ?1 > 0 UNION ALL SELECT i + 1 FROM numbers WHERE \
     i + 1 < ?1), kinds AS (SELECT i, i * ?2 / ?1 < (i + 1) * ?2 / ?1 AS is_script FROM numbers) INSERT INTO items \
     SELECT 1000000 + i, i + 1, CASE WHEN is_script THEN 'Cycler' ELSE 'Notecard ' || i END, CASE WHEN is_script THEN \
     i % ?3 END FROM kinds";

const ALL_PRIMS: &str =
    "SELECT local_id, name, x, y, z, width, depth, height, shape, group_id FROM prims ORDER BY local_id";
const ITEMS_OF_PRIM: &str = "SELECT item_id, name, script FROM items WHERE prim = ?1 ORDER BY item_id";
const ALL_ITEMS: &str = "SELECT item_id, name, script, prim FROM items ORDER BY item_id";
const ALL_SCRIPTS: &str = "SELECT text FROM scripts ORDER BY script";

fn item(row: &Row<'_>) -> rusqlite::Result<InventoryItem> {
    Ok(InventoryItem { item_id: row.get(0)?, name: row.get(1)?, script: row.get(2)? })
}

fn failed(error: rusqlite::Error) -> io::Error {
    io::Error::other(format!("the region's store: {error}; check the space for temporary files"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;

    fn loaded(switches: &Switches) -> Vec<SceneObjectGroup> {
        let folder = TemporaryFolder::new("store-test").unwrap();
        let furnishing = Furnishing { prims: 10, scripted: 5 };
        let store = RegionStore::create(&folder.path().join("region.sqlite"), furnishing, switches).unwrap();
        let mut groups = store.load_objects().unwrap();
        store.load_items(&mut groups).unwrap();
        groups
    }

    #[test]
    fn prims_are_in_groups_of_four_with_one_item_each() {
        for switches in [Switches::default(), Switches::only(Switch::SqlPerPrim)] {
            let groups = loaded(&switches);
            let ids: Vec<Vec<_>> =
                groups.iter().map(|group| group.parts.iter().map(|part| part.local_id).collect()).collect();
            assert_eq!(ids, [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9, 10]]);
            let item = |group: usize, part: usize| groups[group].parts[part].inventory.clone();
            let notecard = InventoryItem { item_id: 1_000_000, name: "Notecard 0".into(), script: None };
            let script = InventoryItem { item_id: 1_000_009, name: "Cycler".into(), script: Some(1) };
            assert_eq!((item(0, 0), item(2, 1)), (vec![notecard], vec![script]));
            let scripted =
                groups.iter().flat_map(|group| &group.parts).filter(|part| part.inventory[0].script.is_some());
            assert_eq!(scripted.count(), 5);
        }
    }

    #[test]
    fn a_store_can_be_empty() {
        let folder = TemporaryFolder::new("store-test").unwrap();
        let furnishing = Furnishing { prims: 0, scripted: 0 };
        let store = RegionStore::create(&folder.path().join("r"), furnishing, &Switches::default()).unwrap();
        assert!(store.load_objects().unwrap().is_empty());
        assert_eq!(store.load_scripts().unwrap().len(), 8);
    }
}
