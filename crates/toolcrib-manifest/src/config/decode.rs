//! Files with a schema of their own, such as `config.yml`: checked whole, then read into a type.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::layers::decode_layers;
use crate::diagnostic::Diagnostic;

/// Reads a YAML or TOML text (by the file's name) into a type.
///
/// All problems are reported at once, each with its place: the text is checked against the type's
/// JSON Schema before it is deserialized. Unknown keys are errors, even without
/// `deny_unknown_fields`. An empty text counts as an empty mapping.
///
/// ```
/// use toolcrib_manifest::{decode, units::HumanDuration};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Config {
///     timeout: HumanDuration,
/// }
///
/// assert!(decode::<Config>("config.yml", "timeout: 30s").is_ok());
/// let problems = decode::<Config>("config.yml", "timout: 30s\n").err().unwrap_or_default();
/// assert_eq!(problems[0].code, "unknown-key");
/// assert_eq!(problems[0].help.as_deref(), Some("did you mean `timeout`?"));
/// ```
///
/// # Errors
/// The problems of the file, in the order of the text; render them with the same `file` and `text`.
pub fn decode<T: DeserializeOwned + JsonSchema>(
    file: &str,
    text: &str,
) -> Result<T, Vec<Diagnostic>> {
    match decode_layers(Some((file, text)), &[]) {
        Ok(layered) => Ok(layered.value),
        Err(problems) => Err(problems.into_iter().map(|problem| problem.diagnostic).collect()),
    }
}
