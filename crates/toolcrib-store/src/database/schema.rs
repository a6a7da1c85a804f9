//! The tables, and the migrations from older versions.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::DatabaseError;
use crate::folder::location::DatabaseLocation;

/// The migrations, one for each version of the schema, in order. A released migration never changes; add a new one
/// instead.
const MIGRATIONS: &[Migration] = &[
    Migration {
        tables: include_str!("schema/001_servers_suspensions_runs.sql"),
        counted: &["suspensions", "settled", "taken", "runs"],
    },
    Migration { tables: include_str!("schema/002_spills.sql"), counted: &["spills"] },
    Migration { tables: include_str!("schema/003_answers.sql"), counted: &["answers"] },
    Migration { tables: include_str!("schema/004_pins_trust.sql"), counted: &[] },
    Migration { tables: include_str!("schema/005_tasks.sql"), counted: &["tasks"] },
    Migration { tables: include_str!("schema/006_waits_in.sql"), counted: &[] },
    Migration { tables: include_str!("schema/007_resolved.sql"), counted: &["resolved"] },
    Migration { tables: include_str!("schema/008_same_call.sql"), counted: &[] },
    Migration { tables: include_str!("schema/009_pinned_texts.sql"), counted: &[] },
    Migration { tables: include_str!("schema/010_journal.sql"), counted: &[] },
    Migration { tables: include_str!("schema/011_retention.sql"), counted: &[] },
    Migration { tables: include_str!("schema/012_open_runs.sql"), counted: &[] },
    Migration { tables: include_str!("schema/013_cancel_requests.sql"), counted: &[] },
    Migration { tables: include_str!("schema/014_runs_of_keys.sql"), counted: &[] },
    Migration { tables: include_str!("schema/015_exposed.sql"), counted: &[] },
    Migration { tables: include_str!("schema/016_run_messages.sql"), counted: &[] },
    Migration { tables: include_str!("schema/017_sealing_key.sql"), counted: &[] },
];

/// The header of a `toolcrib` database contains this number, so that no other program's file is changed by mistake.
const APPLICATION_ID: i32 = 0x7463_7262;

struct Migration {
    tables: &'static str,
    /// The new tables whose rows are counted for each owner in the table `usage`.
    counted: &'static [&'static str],
}

/// Migrates the database to the newest schema. Refuses a database that a newer toolcrib made.
pub(crate) fn migrate(
    connection: &mut Connection,
    place: &DatabaseLocation,
) -> Result<(), DatabaseError> {
    migrate_to(MIGRATIONS.len(), connection, place)
}

/// Migrates the database to the schema of this version, which must not be older than the database's own.
fn migrate_to(
    newest: usize,
    connection: &mut Connection,
    place: &DatabaseLocation,
) -> Result<(), DatabaseError> {
    let failed = |error| place.failure(error);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma("application_id").map_err(failed)?;
    let tables: i64 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if application != APPLICATION_ID && (tables > 0 || application != 0) {
        return Err(DatabaseError::Foreign { place: place.to_string() });
    }
    let done = version(&transaction, place)?;
    for (step, version) in MIGRATIONS.iter().zip(1_i32..).take(newest).skip(done) {
        transaction.execute_batch(step.tables).map_err(failed)?;
        for table in step.counted {
            transaction.execute_batch(&counting(table)).map_err(failed)?;
        }
        transaction.pragma_update(None, "user_version", version).map_err(failed)?;
    }
    if application != APPLICATION_ID {
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Whether a file is a database of toolcrib.
pub(crate) fn is_own(connection: &Connection) -> rusqlite::Result<bool> {
    let id = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?;
    Ok(id == APPLICATION_ID)
}

/// The version of a database's schema; 0 for an empty database. Refuses a newer one.
pub(crate) fn version(
    connection: &Connection,
    place: &DatabaseLocation,
) -> Result<usize, DatabaseError> {
    let found = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0));
    let found = found.map_err(|error| place.failure(error))?;
    let known = MIGRATIONS.len();
    match usize::try_from(found) {
        Ok(version) if version <= known => Ok(version),
        _ => Err(DatabaseError::Newer { place: place.to_string(), found, known }),
    }
}

/// Whether a database has the newest schema that this program knows.
pub(crate) fn is_current(
    connection: &Connection,
    place: &DatabaseLocation,
) -> Result<bool, DatabaseError> {
    version(connection, place).map(|version| version == MIGRATIONS.len())
}

/// Triggers that count a table's rows for each owner and in total.
fn counting(table: &str) -> String {
    let add = |row: &str, sign: &str| {
        format!(
            "INSERT INTO usage (kind, owner, entries, bytes)
                VALUES ('{table}', {row}.owner, {sign}1, {sign}{row}.bytes),
                       ('{table}', x'', {sign}1, {sign}{row}.bytes)
                ON CONFLICT (kind, owner) DO UPDATE SET
                    entries = entries + excluded.entries, bytes = bytes + excluded.bytes;
             DELETE FROM usage WHERE kind = '{table}' AND owner = {row}.owner AND entries = 0;"
        )
    };
    format!(
        "CREATE TRIGGER {table}_added AFTER INSERT ON {table} BEGIN {added} END;
         CREATE TRIGGER {table}_removed AFTER DELETE ON {table} BEGIN {removed} END;
         CREATE TRIGGER {table}_resized AFTER UPDATE OF bytes, owner ON {table}
             BEGIN {removed} {added} END;",
        added = add("new", ""),
        removed = add("old", "-"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_core::bounds::Bounds;
    use toolcrib_core::clock::Timestamp;
    use toolcrib_core::run::{RunId, RunRecord, RunStore as _};
    use toolcrib_core::suspension::{
        ResolutionKind, Resolved, Settled, StoreError, Suspension, SuspensionStore as _, Waiting,
    };
    use toolcrib_tool::{Arguments, CallId, Layer, Source, ToolDefinition, ToolEntry};

    use super::*;
    use crate::folder::location::prepare;
    use crate::tables::owner::OwnerDigest;
    use crate::{Database, Runs, Suspensions};

    fn usage(connection: &Connection) -> Vec<(String, i64, i64)> {
        let mut query = connection
            .prepare("SELECT hex(owner), entries, bytes FROM usage WHERE kind = 'runs' ORDER BY 1")
            .unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn row_counts_follow_every_insert_update_replace_and_delete() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "recursive_triggers", true).unwrap();
        migrate(&mut connection, &DatabaseLocation::Memory).unwrap();
        let run = |sql: &str| connection.execute(sql, []).unwrap();
        let columns = "(id, owner, created_at, expires_at, bytes, last)";
        run(&format!("INSERT INTO runs {columns} VALUES ('1', x'aa', 0, 0, 10, 1)"));
        run(&format!("INSERT INTO runs {columns} VALUES ('2', x'aa', 0, 0, 5, 1)"));
        run(&format!("INSERT INTO runs {columns} VALUES ('3', x'bb', 0, 0, 1, 1)"));
        let owned = |owner: &str, entries, bytes| (owner.to_owned(), entries, bytes);
        let all = [owned("", 3, 16), owned("AA", 2, 15), owned("BB", 1, 1)];
        assert_eq!(usage(&connection), all);
        run("UPDATE runs SET bytes = 7 WHERE id = '2'");
        run(&format!("REPLACE INTO runs {columns} VALUES ('1', x'aa', 0, 0, 20, 1)"));
        run("DELETE FROM runs WHERE id = '3'");
        assert_eq!(usage(&connection), [owned("", 2, 27), owned("AA", 2, 27)]);
    }

    #[tokio::test]
    async fn runs_stored_as_one_record_become_journals_and_keep_their_quota() {
        let home = tempfile::tempdir().unwrap();
        let (source, at) = (Source::new(Layer::Host, "test"), Timestamp::from_unix_millis);
        let definition = ToolDefinition::builder("t").description("A tool.").build().unwrap();
        let entry = ToolEntry::client(definition, source);
        let arguments = Arguments::from_validated(r#"{"n":90071992547409910.50}"#.to_owned());
        let (call, until) = (CallId::new("1"), Timestamp::NEVER);
        let waits = Suspension::new(&call, &entry, &arguments, Waiting::Client, at(5), until);
        let waits = waits.unwrap().for_identity("ada");
        let id = RunId::random().unwrap();
        let record = json!({
            "id": id, "identity": "ada", "created_at": 5, "version": 7,
            "slots": [{"waiting": waits}], "ending": "cancelled",
        });

        drop(prepare(home.path()).unwrap());
        let mut old = Connection::open(home.path().join("toolcrib.db")).unwrap();
        migrate_to(9, &mut old, &DatabaseLocation::Memory).unwrap();
        let sql = "INSERT INTO runs (id, owner, created_at, expires_at, bytes, version, record)
                   VALUES (?1, ?2, 5, ?3, ?4, 7, ?5)";
        let text = record.to_string();
        let row = |id: &str, text: &str| {
            old.execute(sql, (id, OwnerDigest::of("ada"), i64::MAX, text.len(), text)).unwrap()
        };
        row(id.as_str(), &text);
        row("damaged", "{\"id\":");
        drop(old);

        let database = Database::open(home.path()).unwrap();
        let runs = Runs::within(&database, Bounds::per_identity(2));
        let found = runs.load(&id).await.unwrap().unwrap();
        let kept: RunRecord = serde_json::from_value(record).unwrap();
        assert_eq!(found, kept.with_version(1));
        assert_eq!(runs.page("ada", None, 10).await.unwrap(), std::slice::from_ref(&found));
        let next = json!({
            "id": RunId::random().unwrap(), "identity": "ada", "created_at": 6, "version": 0,
            "slots": [],
        });
        let next: RunRecord = serde_json::from_value(next).unwrap();
        assert!(matches!(runs.save(&next).await, Err(StoreError::Full(_))), "both wait");

        // A decision by somebody else releases its quota, as for any run.
        let suspensions = Suspensions::new(&database);
        suspensions.put(&waits).await.unwrap();
        let by = Resolved::new(&waits, ResolutionKind::Denied, "ops", at(6));
        let taken = suspensions.take_for_caller(waits.id(), &by).await.unwrap().unwrap();
        suspensions.settle(&Settled::running(taken, at(6)).lost(None)).await.unwrap();
        assert_eq!(runs.save(&next).await.unwrap(), 1);
        assert_eq!(runs.load(&id).await.unwrap(), Some(found));
    }

    #[test]
    fn newer_and_foreign_databases_are_refused_and_left_unchanged() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &DatabaseLocation::Memory).unwrap();
        migrate(&mut connection, &DatabaseLocation::Memory).unwrap();
        connection.pragma_update(None, "user_version", 1_000).unwrap();
        let error = migrate(&mut connection, &DatabaseLocation::Memory).unwrap_err();
        assert!(matches!(error, DatabaseError::Newer { found: 1_000, .. }), "{error}");

        let mut other = Connection::open_in_memory().unwrap();
        other.execute_batch("CREATE TABLE theirs (x)").unwrap();
        let error = migrate(&mut other, &DatabaseLocation::Memory).unwrap_err();
        assert!(matches!(error, DatabaseError::Foreign { .. }), "{error}");
    }
}
