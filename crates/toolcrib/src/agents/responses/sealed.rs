//! Texts that clients keep for the server and can neither read nor change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use toolcrib_core::TurnOptions;
use toolcrib_wire::api::ApiError;

use super::fault;
use crate::Toolcrib;

/// What a sealed text begins with: the version of its form.
const FORM: &str = "tc1_";
const FAILED: &str = "the conversation could not be sealed";

impl Toolcrib {
    /// Seals a text for the identity of a client.
    pub(super) async fn sealed(
        &self,
        client: &TurnOptions,
        text: &str,
    ) -> Result<String, ApiError> {
        let key = self.seal().await?;
        let identity = self.executor().turn(client.clone()).identity().to_owned();
        sealed(&key, &identity, text).map_err(|error| fault(FAILED, &error))
    }

    /// The text that was sealed for the identity of this client; `None` if it is none.
    pub(super) async fn unsealed(
        &self,
        client: &TurnOptions,
        sealed: &str,
    ) -> Result<Option<String>, ApiError> {
        let key = self.seal().await?;
        let identity = self.executor().turn(client.clone()).identity().to_owned();
        Ok(unsealed(&key, &identity, sealed))
    }

    /// The key, which all servers with the same state have.
    async fn seal(&self) -> Result<LessSafeKey, ApiError> {
        let failed = |error: &dyn std::fmt::Display| fault(FAILED, error);
        let database = self.database().ok_or_else(|| failed(&"there is no database"))?;
        let mut new = [0; 32];
        SystemRandom::new().fill(&mut new).map_err(|error| failed(&error))?;
        let key = database.sealing_key(new).await.map_err(|error| failed(&error))?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).map_err(|error| failed(&error))?;
        Ok(LessSafeKey::new(key))
    }
}

fn sealed(
    key: &LessSafeKey,
    identity: &str,
    text: &str,
) -> Result<String, ring::error::Unspecified> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce)?;
    let mut bytes = text.as_bytes().to_vec();
    let bound_to = Aad::from(identity.as_bytes());
    let unique = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(unique, bound_to, &mut bytes)?;
    let all: Vec<u8> = nonce.into_iter().chain(bytes).collect();
    Ok(format!("{FORM}{}", URL_SAFE_NO_PAD.encode(all)))
}

fn unsealed(key: &LessSafeKey, identity: &str, sealed: &str) -> Option<String> {
    let all = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(FORM)?).ok()?;
    let (nonce, bytes) = all.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut bytes = bytes.to_vec();
    let text = key.open_in_place(nonce, Aad::from(identity.as_bytes()), &mut bytes).ok()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_identity_for_which_a_text_was_sealed_gets_it_back() {
        let key =
            |byte| LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &[byte; 32]).unwrap());
        let text = sealed(&key(1), "ada", "what was said").unwrap();
        assert!(!text.contains("said"));
        assert_eq!(unsealed(&key(1), "ada", &text).as_deref(), Some("what was said"));
        assert_ne!(sealed(&key(1), "ada", "what was said").unwrap(), text);
        assert_eq!(unsealed(&key(1), "eve", &text), None);
        assert_eq!(unsealed(&key(2), "ada", &text), None);
        for wrong in ["", "tc1_", "tc1_AAAA", &text[1..], &text[..text.len() - 2]] {
            assert_eq!(unsealed(&key(1), "ada", wrong), None, "{wrong}");
        }
    }
}
