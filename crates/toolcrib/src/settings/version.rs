//! The version of the format of config files.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The only supported version.
const VERSION: u64 = 1;

/// The version of the format of config files: `1`. A file with a later version is refused, so that no setting is
/// misread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ConfigVersion(u64);

impl Default for ConfigVersion {
    fn default() -> Self {
        Self(VERSION)
    }
}

impl<'de> Deserialize<'de> for ConfigVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            VERSION => Ok(Self(VERSION)),
            other => Err(D::Error::custom(format!(
                "version {other} of the config format is unknown here"
            ))),
        }
    }
}

impl JsonSchema for ConfigVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ConfigVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer",
            "minimum": VERSION,
            "maximum": VERSION,
            "x-expected": "1, the version of the config format that this toolcrib reads; a file of a newer version needs a newer toolcrib",
        })
    }
}
