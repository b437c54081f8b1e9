//! Instants on the wire: ISO 8601, UTC, milliseconds.

use std::fmt::Write as _;

/// 9999-12-31T23:59:59.999Z, the last instant whose year has four digits. A deadline without end is this.
pub const LAST_MS: i64 = 253_402_300_799_999;

const DAY_MS: i64 = 86_400_000;

/// Writes milliseconds since 1970 as `2026-07-28T09:30:00.125Z`. What lies outside 1970 to 9999 is moved inside.
#[must_use]
pub fn iso8601(epoch_ms: i64) -> String {
    let epoch_ms = epoch_ms.clamp(0, LAST_MS);
    let (days, ms) = (epoch_ms / DAY_MS, epoch_ms % DAY_MS);
    let (year, month, day) = civil(days);
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let mut out = String::with_capacity(24);
    write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z",
        ms % 1000
    )
    .expect("a string takes whatever is written to it");
    out
}

/// The date of a day since 1970, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years are counted from 1 March, so that the leap day is the last of its year; an era has 400 of them.
    const ERA_DAYS: i64 = 146_097;
    const DAYS_FROM_YEAR_0: i64 = 719_468;
    let since_0 = days + DAYS_FROM_YEAR_0;
    let (era, day) = (since_0 / ERA_DAYS, since_0 % ERA_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    // Months from March: 153 days in every five.
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let january_on = month >= 10;
    (
        era * 400 + year + i64::from(january_on),
        if january_on { month - 9 } else { month + 3 },
        day_of_month,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_are_written_as_they_should() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_078_012_800_000, "2004-02-29T00:00:00.000Z"),
            (1_785_231_000_125, "2026-07-28T09:30:00.125Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso8601(ms), text);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut expected = (1970, 1, 1);
        for day in 0..=LAST_MS / DAY_MS {
            assert_eq!(civil(day), expected, "day {day}");
            let (year, month, date) = expected;
            let length = match month {
                2 => 28 + i64::from(is_leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (date < length, month < 12) {
                (true, _) => (year, month, date + 1),
                (false, true) => (year, month + 1, 1),
                (false, false) => (year + 1, 1, 1),
            };
        }
    }
}
