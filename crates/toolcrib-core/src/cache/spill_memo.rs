//! Where the texts of one answer were spilled, so that all who get the answer share one spill.

use tokio::sync::Mutex;

use crate::identity::fingerprint::Fingerprint;
use crate::output::spill::{Handle, Owner, SpillError, SpillStore, Spilled};

/// Texts per answer: one, or the text and the data of a failure, for each session.
const MAX_TEXTS: usize = 64;

/// The spill handles of one answer, by owner and text. The text can change over time, because
/// secrets may be added to the mask.
#[derive(Debug, Default)]
pub(crate) struct SpillMemo(Mutex<Vec<SpilledText>>);

#[derive(Debug)]
struct SpilledText {
    owner: Owner,
    text: Fingerprint,
    handle: Handle,
}

impl SpillMemo {
    /// The handle of a text: the existing one if the store still has the text, otherwise a new one.
    ///
    /// Of several concurrent callers, one writes the text and the others wait.
    pub(crate) async fn put(
        &self,
        store: &dyn SpillStore,
        owner: &Owner,
        spilled: Spilled,
    ) -> Result<Handle, SpillError> {
        let text = fingerprint(&spilled);
        let mut all = self.0.lock().await;
        let place = all.iter().position(|known| known.text == text && known.owner == *owner);
        if let Some(known) = place.map(|place| all.remove(place))
            && store.read(owner, &known.handle, 0, 1).await.is_ok()
        {
            let handle = known.handle;
            // Keeps the most recently used ones.
            all.push(known);
            return Ok(handle);
        }
        let handle = store.put(owner, spilled).await?;
        if all.len() >= MAX_TEXTS {
            all.remove(0);
        }
        all.push(SpilledText { owner: owner.clone(), text, handle });
        Ok(handle)
    }
}

fn fingerprint(spilled: &Spilled) -> Fingerprint {
    let Spilled { text, format, omitted_bytes } = spilled;
    let head = format!("{} {omitted_bytes} ", format.as_str());
    Fingerprint::of_parts(&[head.as_bytes(), text.as_bytes()])
}
