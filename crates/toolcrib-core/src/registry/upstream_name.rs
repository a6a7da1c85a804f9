//! The name under which another server's tool is exposed.

use std::fmt::Write as _;

use toolcrib_tool::ToolName;

/// The length of the suffix of a truncated name: `_` and eight digits of a hash.
const SUFFIX: usize = 9;

/// The exposed name of an upstream's tool: `upstream_tool`, with `_` for invalid characters. A name
/// over [`ToolName::MAX_LEN`] is truncated and gets a stable hash of the whole as suffix.
///
/// Two equal exposed names are a normal conflict. The original name is used on the wire.
///
/// ```
/// use toolcrib_core::exposed_name;
///
/// assert_eq!(exposed_name("git hub", "issues.list"), "git_hub_issues_list");
/// let long = exposed_name("upstream", &"x".repeat(80));
/// assert_eq!(long.len(), 64);
/// assert_ne!(long, exposed_name("upstream", &"x".repeat(81)));
/// ```
pub fn exposed_name(upstream: &str, tool: &str) -> String {
    let whole = format!("{upstream}_{tool}");
    let mut name: String = whole
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    if name.len() > ToolName::MAX_LEN {
        name.truncate(ToolName::MAX_LEN - SUFFIX);
        let hash = fnv1a(whole.as_bytes());
        // Writing to a string cannot fail.
        let _ = write!(name, "_{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff));
    }
    name
}

/// FNV-1a, because names must be the same in every version and on every machine, which library
/// hashers do not guarantee.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::exposed_name;
    use proptest::prelude::*;
    use toolcrib_tool::ToolName;

    #[test]
    fn a_cut_name_never_changes() {
        let name = exposed_name("server", &"long_".repeat(20));
        assert_eq!(name, "server_long_long_long_long_long_long_long_long_long_lon_e582c72d");
    }

    proptest! {
        #[test]
        fn every_exposed_name_is_a_name(upstream in "\\PC{0,40}", tool in "\\PC{0,80}") {
            let name = exposed_name(&upstream, &tool);
            prop_assert!(ToolName::new(&name).is_ok(), "{name}");
        }

        #[test]
        fn a_name_that_fits_is_kept(upstream in "[a-z]{1,8}", tool in "[a-zA-Z0-9_-]{1,50}") {
            prop_assert_eq!(exposed_name(&upstream, &tool), format!("{upstream}_{tool}"));
        }
    }
}
