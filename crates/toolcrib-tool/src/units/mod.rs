//! Durations and sizes as people write them: `30s`, `64KiB`.

pub mod or_none;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use or_none::OrNone;

/// A time span: a whole number with a unit (`250ms`, `30s`, `5m`, `2h`, `1d`), or `none` for no
/// limit.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_tool::units::HumanDuration;
///
/// let limit: HumanDuration = "250ms".parse()?;
/// assert_eq!(limit.0, Some(Duration::from_millis(250)));
/// assert_eq!("none".parse::<HumanDuration>()?.0, None);
/// assert!("30".parse::<HumanDuration>().unwrap_err().to_string().contains("250ms"));
/// # Ok::<(), toolcrib_tool::units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(
    /// The duration; `None` means no limit.
    pub Option<Duration>,
);

/// A time limit: a [`HumanDuration`] longer than zero, or `none`. A limit of zero would end everything before it
/// begins, so it is refused when it is parsed.
///
/// ```
/// use toolcrib_tool::units::TimeLimit;
///
/// assert_eq!("30s".parse::<TimeLimit>()?.to_string(), "30s");
/// assert_eq!("none".parse::<TimeLimit>()?.0, None);
/// assert!("0s".parse::<TimeLimit>().unwrap_err().to_string().contains("longer than zero"));
/// # Ok::<(), toolcrib_tool::units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(
    /// The limit; `None` means no limit.
    pub Option<Duration>,
);

/// A duration longer than zero; `none` is not allowed.
///
/// ```
/// use toolcrib_tool::units::Timeout;
///
/// assert_eq!("30s".parse::<Timeout>()?.to_string(), "30s");
/// assert!("none".parse::<Timeout>().is_err());
/// # Ok::<(), toolcrib_tool::units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(
    /// The duration.
    pub Duration,
);

/// A limit in bytes: a [`ByteSize`] greater than zero.
///
/// ```
/// use toolcrib_tool::units::SizeLimit;
///
/// assert_eq!("64KiB".parse::<SizeLimit>()?.0, 65_536);
/// assert!("0B".parse::<SizeLimit>().is_err());
/// # Ok::<(), toolcrib_tool::units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeLimit(
    /// The number of bytes.
    pub u64,
);

/// A number of bytes: a whole number with a unit (`512B`, `64KiB`, `1MiB`, `2GiB`, `10KB`, `5MB`).
///
/// ```
/// use toolcrib_tool::units::ByteSize;
///
/// assert_eq!("64KiB".parse::<ByteSize>()?.0, 65_536);
/// assert_eq!(ByteSize(65_536).to_string(), "64KiB");
/// # Ok::<(), toolcrib_tool::units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(
    /// The number of bytes.
    pub u64,
);

/// An invalid duration or size. Its text describes valid ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    written: String,
    expected: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.written, self.expected)
    }
}

impl std::error::Error for UnitError {}

const DURATION: &str =
    "a duration: a whole number with ms, s, m, h or d, such as 250ms, 30s or 5m, or none";
const DURATION_PATTERN: &str = "^([0-9]{1,9}(ms|s|m|h|d)|none)$";
/// Largest first; durations are printed in the largest unit that fits.
const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const TIME_LIMIT: &str = "a time longer than zero: a whole number with ms, s, m, h or d, such as 250ms, 30s or 5m, or none for no limit";
const TIME_LIMIT_PATTERN: &str = "^(0*[1-9][0-9]{0,8}(ms|s|m|h|d)|none)$";

const TIMEOUT: &str =
    "a time longer than zero: a whole number with ms, s, m, h or d, such as 250ms, 30s or 5m";
const TIMEOUT_PATTERN: &str = "^0*[1-9][0-9]{0,8}(ms|s|m|h|d)$";

const SIZE_LIMIT: &str =
    "a size of more than zero: a whole number with B, KiB, MiB, GiB, KB, MB or GB, such as 64KiB";
const SIZE_LIMIT_PATTERN: &str = "^0*[1-9][0-9]{0,14}(B|KiB|MiB|GiB|KB|MB|GB)$";

const SIZE: &str = "a size: a whole number with B, KiB, MiB, GiB, KB, MB or GB, such as 64KiB";
const SIZE_PATTERN: &str = "^[0-9]{1,15}(B|KiB|MiB|GiB|KB|MB|GB)$";
/// Largest binary unit first; sizes are printed in the largest unit that fits.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

/// Parses a whole number followed by exactly one of the units, and multiplies them.
fn measure(text: &str, units: &[(&str, u64)], digits_max: usize) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    (digits <= digits_max).then_some(())?;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

impl FromStr for HumanDuration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text == "none" {
            return Ok(Self(None));
        }
        measure(text, &DURATION_UNITS, 9)
            .map(|millis| Self(Some(Duration::from_millis(millis))))
            .ok_or_else(|| UnitError { written: text.to_owned(), expected: DURATION })
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        measure(text, &SIZE_UNITS, 15)
            .map(Self)
            .ok_or_else(|| UnitError { written: text.to_owned(), expected: SIZE })
    }
}

impl FromStr for TimeLimit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = || UnitError { written: text.to_owned(), expected: TIME_LIMIT };
        let HumanDuration(limit) = text.parse().map_err(|_| refused())?;
        if limit.is_some_and(|limit| limit.is_zero()) { Err(refused()) } else { Ok(Self(limit)) }
    }
}

impl FromStr for Timeout {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = || UnitError { written: text.to_owned(), expected: TIMEOUT };
        let TimeLimit(limit) = text.parse().map_err(|_| refused())?;
        limit.map(Self).ok_or_else(refused)
    }
}

impl FromStr for SizeLimit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = || UnitError { written: text.to_owned(), expected: SIZE_LIMIT };
        let ByteSize(bytes) = text.parse().map_err(|_| refused())?;
        if bytes == 0 { Err(refused()) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HumanDuration(self.0).fmt(f)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HumanDuration(Some(self.0)).fmt(f)
    }
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ByteSize(self.0).fmt(f)
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(duration) = self.0 else { return f.write_str("none") };
        let millis = duration.as_millis();
        let exact = DURATION_UNITS.iter().find(|(_, factor)| {
            millis >= u128::from(*factor) && millis.is_multiple_of(u128::from(*factor))
        });
        match exact {
            Some((unit, factor)) => write!(f, "{}{unit}", millis / u128::from(*factor)),
            None => f.write_str("0s"),
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SIZE_UNITS
            .iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        match exact {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => f.write_str("0B"),
        }
    }
}

/// All of these types are strings in files and in JSON.
macro_rules! as_text {
    ($type:ident, $expected:expr, $pattern:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    // Messages about config files and manifests show this instead of the pattern.
                    "x-expected": $expected,
                })
            }
        }
    };
}

as_text!(HumanDuration, DURATION, DURATION_PATTERN);
as_text!(ByteSize, SIZE, SIZE_PATTERN);
as_text!(TimeLimit, TIME_LIMIT, TIME_LIMIT_PATTERN);
as_text!(Timeout, TIMEOUT, TIMEOUT_PATTERN);
as_text!(SizeLimit, SIZE_LIMIT, SIZE_LIMIT_PATTERN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_survive_printing() {
        for text in ["250ms", "30s", "5m", "2h", "1d", "0s", "none", "1500ms"] {
            assert_eq!(text.parse::<HumanDuration>().unwrap().to_string(), text);
        }
        for text in ["512B", "64KiB", "3MiB", "2GiB", "0B", "1000B"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        assert_eq!("10KB".parse::<ByteSize>().unwrap(), ByteSize(10_000));
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_the_type_and_by_its_schema() {
        for text in ["0s", "0ms", "000d", "30", ""] {
            assert!(text.parse::<TimeLimit>().is_err(), "{text}");
        }
        for text in ["0B", "00GiB", "64", ""] {
            assert!(text.parse::<SizeLimit>().is_err(), "{text}");
        }
        assert_eq!("010s".parse::<TimeLimit>().unwrap().0, Some(Duration::from_secs(10)));
    }

    #[test]
    fn invalid_units_are_refused_with_an_example() {
        for text in ["", "30", "s", "1.5s", "-1s", "1 s", "1e3s", "1234567890s", "30S"] {
            let refused = text.parse::<HumanDuration>().unwrap_err().to_string();
            assert!(refused.contains("such as 250ms"), "{refused}");
        }
        for text in ["", "64", "64kib", "999999999999999GiB", "1.5MiB", "-1B"] {
            let refused = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(refused.contains("such as 64KiB"), "{refused}");
        }
    }
}
