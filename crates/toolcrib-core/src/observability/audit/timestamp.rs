//! Times as RFC 3339 text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serializer;

/// The last time that RFC 3339 can express, 9999-12-31T23:59:59.999Z, since 1970.
const LAST: Duration = Duration::from_millis(253_402_300_799_999);

/// The time in UTC with milliseconds, clamped to the years 1970 to 9999.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use toolcrib_core::audit::rfc3339;
///
/// assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(951_782_400_007)), "2000-02-29T00:00:00.007Z");
/// ```
pub fn rfc3339(time: SystemTime) -> String {
    // Outside these bounds the formatter's output is not valid.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().min(LAST);
    humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
}

pub(super) fn serialize<S: Serializer>(
    time: &SystemTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_the_format_read_as_its_ends() {
        for (time, text) in [
            (UNIX_EPOCH - Duration::from_secs(1), "1970-01-01T00:00:00.000Z"),
            (UNIX_EPOCH + LAST, "9999-12-31T23:59:59.999Z"),
            (UNIX_EPOCH + LAST + Duration::from_secs(1), "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(time), text);
        }
    }
}
