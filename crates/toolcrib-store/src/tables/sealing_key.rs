//! Stores the key with which servers seal what clients keep for them.

use crate::database::Database;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;

/// The bytes of a key.
type Key = [u8; 32];

fn stored(tx: &Tx<'_>) -> Result<Option<Key>, DatabaseError> {
    tx.one("SELECT key FROM sealing_key WHERE id = 1", [], |row| row.get(0))
}

impl Database {
    /// The key with which servers seal what clients keep for them. All servers that share the database have the same.
    /// `new`, which has to be random, becomes the key if there is none.
    pub async fn sealing_key(&self, new: Key) -> Result<Key, DatabaseError> {
        if let Some(key) = self.read(stored).await? {
            return Ok(key);
        }
        self.write(move |tx| {
            let add = "INSERT OR IGNORE INTO sealing_key (id, key) VALUES (1, ?1)";
            tx.execute(add, [new.as_slice()])?;
            Ok(stored(tx)?.unwrap_or(new))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_key_stays() {
        let database = Database::in_memory().unwrap();
        assert_eq!(database.sealing_key([1; 32]).await.unwrap(), [1; 32]);
        assert_eq!(database.sealing_key([2; 32]).await.unwrap(), [1; 32]);
    }
}
