//! Host names that are valid only inside a local network.

/// Last labels of names that no public server has.
const INSIDE: [&str; 11] = [
    "corp",
    "home",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
];

/// Why a lower-case name is not public, as one clause; `None` if it may be.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let Some((rest, last)) = name.rsplit_once('.') else {
        return Some("a name without a dot belongs to the local network");
    };
    if last.is_empty() || rest.split('.').any(str::is_empty) {
        return Some("a part of the name is empty");
    }
    let home = last == "arpa" && rest.rsplit('.').next() == Some("home");
    (home || INSIDE.contains(&last)).then_some("such names belong to a local network")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_local_networks_are_distinguished_from_public_ones() {
        for public in ["example.com", "example.com.", "local.example", "svc.dev", "home.arpa.com"] {
            assert_eq!(refusal(public), None, "{public}");
        }
        for inside in [
            "",
            ".",
            "db",
            "db.",
            "localhost",
            "a.localhost",
            "printer.local",
            "metadata.google.internal",
            "metadata.google.internal.",
            "db.prod.svc",
            "kubernetes.default.svc.cluster.local",
            "router.lan",
            "home.arpa",
            "nas.home.arpa",
            "a..com",
            ".com",
            "com..",
        ] {
            assert!(refusal(inside).is_some(), "{inside}");
        }
    }
}
