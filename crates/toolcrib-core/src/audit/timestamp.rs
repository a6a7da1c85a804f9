//! Times as RFC 3339 text.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serializer;

const DAY: u64 = 24 * 60 * 60;

/// The time in UTC with milliseconds; times before 1970 read as its first moment.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use toolcrib_core::audit::rfc3339;
///
/// assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(951_782_400_007)), "2000-02-29T00:00:00.007Z");
/// ```
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since.as_secs() / DAY);
    let second = since.as_secs() % DAY;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// Year, month and day of a number of days after 1970-01-01, in the Gregorian calendar: the year
/// is taken to begin in March, so that the leap day is its last (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let era = days / 146_097; // 400 years
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
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
    fn every_day_follows_the_one_before() {
        let by = |year: u64, years: u64| year.is_multiple_of(years);
        let leap = |year| by(year, 4) && (!by(year, 100) || by(year, 400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..(500 * 366) {
            assert_eq!(date(days), (year, month, day));
            let length = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
