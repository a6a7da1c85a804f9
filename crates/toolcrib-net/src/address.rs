//! Which addresses may be connected to: a table of our own, and the ranges an operator opens.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressKind {
    /// This machine: `127.0.0.0/8`, `::1`, and `0.0.0.0` and `::`, which have the same effect.
    Loopback,
    /// A private network: `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `fc00::/7`, and the obsolete site-local
    /// `fec0::/10`.
    Private,
    /// The local link, where metadata services of clouds are: `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// Behind a provider's address translation: `100.64.0.0/10`.
    Shared,
    /// A cloud's service for its own machines under an address that looks public: `168.63.129.16`.
    Metadata,
    /// Multicast: `224.0.0.0/4`, `ff00::/8`.
    Multicast,
    /// An IPv6 form of an IPv4 address that relays convert back: `2002::/16`, `64:ff9b::/96`, `64:ff9b:1::/48`,
    /// `::/96`, `192.88.99.0/24`.
    Translated,
    /// Reserved for examples, measurements or future use: everything else that is not public.
    Reserved,
}

impl AddressKind {
    /// A description of such an address with its article: `a loopback address`.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "an address behind carrier-grade NAT",
            Self::Metadata => "an address of a cloud's own services",
            Self::Multicast => "a multicast address",
            Self::Translated => "an IPv4 address in disguise",
            Self::Reserved => "a reserved address",
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// Which addresses may be connected to. By default only those of the public internet.
///
/// ```
/// use toolcrib_net::{AddressKind, AddressPolicy};
///
/// let policy = AddressPolicy::public().allow("10.20.0.0/16".parse()?);
/// assert_eq!(policy.check("10.20.3.4".parse()?), Ok(()));
/// assert_eq!(policy.check("10.21.0.1".parse()?), Err(AddressKind::Private));
/// assert_eq!(policy.check("::ffff:127.0.0.1".parse()?), Err(AddressKind::Loopback));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    allowed: Vec<IpNet>,
}

impl AddressPolicy {
    /// The public internet.
    pub fn public() -> Self {
        Self::default()
    }

    /// Allows a range, whatever it contains. Nothing else allows more addresses.
    #[must_use]
    pub fn allow(mut self, range: IpNet) -> Self {
        self.allowed.push(range);
        self
    }

    /// Checks whether an address may be connected to.
    ///
    /// An IPv4 address inside an IPv6 one (`::ffff:10.0.0.1`) is checked as the IPv4 address, because a connection
    /// reaches that one.
    pub fn check(&self, address: IpAddr) -> Result<(), AddressKind> {
        let address = address.to_canonical();
        match kind_of(address) {
            Some(_) if self.allowed.iter().any(|range| range.contains(&address)) => Ok(()),
            Some(kind) => Err(kind),
            None => Ok(()),
        }
    }
}

/// Why an address is not public; `None` for public addresses.
fn kind_of(address: IpAddr) -> Option<AddressKind> {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

/// The blocks of IPv4 that are not public: IANA's registry of special addresses, multicast and the unused rest.
/// `168.63.129.16` is in no registry: it is Azure's.
const BLOCKS: [([u8; 4], u32, AddressKind); 16] = [
    ([0, 0, 0, 0], 8, AddressKind::Loopback),
    ([10, 0, 0, 0], 8, AddressKind::Private),
    ([100, 64, 0, 0], 10, AddressKind::Shared),
    ([127, 0, 0, 0], 8, AddressKind::Loopback),
    ([168, 63, 129, 16], 32, AddressKind::Metadata),
    ([169, 254, 0, 0], 16, AddressKind::LinkLocal),
    ([172, 16, 0, 0], 12, AddressKind::Private),
    ([192, 0, 0, 0], 24, AddressKind::Reserved),
    ([192, 0, 2, 0], 24, AddressKind::Reserved),
    ([192, 88, 99, 0], 24, AddressKind::Translated),
    ([192, 168, 0, 0], 16, AddressKind::Private),
    ([198, 18, 0, 0], 15, AddressKind::Reserved),
    ([198, 51, 100, 0], 24, AddressKind::Reserved),
    ([203, 0, 113, 0], 24, AddressKind::Reserved),
    ([224, 0, 0, 0], 4, AddressKind::Multicast),
    ([240, 0, 0, 0], 4, AddressKind::Reserved),
];

fn kind_of_v4(address: Ipv4Addr) -> Option<AddressKind> {
    let bits = u32::from(address);
    let inside = |block: [u8; 4], prefix: u32| {
        (bits ^ u32::from(Ipv4Addr::from(block))) >> (32 - prefix) == 0
    };
    BLOCKS.iter().find(|(block, prefix, _)| inside(*block, *prefix)).map(|(_, _, kind)| *kind)
}

/// Only parts of `2000::/3` are public in IPv6; everything not known to be public is refused.
fn kind_of_v6(address: Ipv6Addr) -> Option<AddressKind> {
    let [first, second, third, ..] = address.segments();
    let embedded = address.segments()[..6].iter().all(|segment| *segment == 0);
    let kind = match first {
        _ if address.is_loopback() || address.is_unspecified() => AddressKind::Loopback,
        _ if embedded => AddressKind::Translated,
        0x0064 if second == 0xff9b && third <= 1 => AddressKind::Translated,
        0x2002 => AddressKind::Translated,
        0x2001 if second < 0x0200 || second == 0x0db8 => AddressKind::Reserved,
        0x3fff if second < 0x1000 => AddressKind::Reserved,
        0x2000..=0x3fff => return None,
        0xfc00..=0xfdff | 0xfec0..=0xfeff => AddressKind::Private,
        0xfe80..=0xfebf => AddressKind::LinkLocal,
        0xff00..=0xffff => AddressKind::Multicast,
        _ => AddressKind::Reserved,
    };
    Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str) -> Result<(), AddressKind> {
        AddressPolicy::public().check(address.parse().unwrap())
    }

    /// The first and last address of every block, and their neighbours outside.
    #[test]
    fn blocks_have_exact_bounds() {
        for (block, prefix, kind) in BLOCKS {
            let first = u32::from(Ipv4Addr::from(block));
            let last = first | u32::MAX.checked_shr(prefix).unwrap_or(0);
            for inside in [first, last] {
                assert_eq!(kind_of_v4(inside.into()), Some(kind), "{}", Ipv4Addr::from(inside));
            }
            for outside in [first.checked_sub(1), last.checked_add(1)].into_iter().flatten() {
                // Only the last two blocks are adjacent.
                let found = kind_of_v4(outside.into());
                assert!(found.is_none() || outside >> 28 >= 14, "{}", Ipv4Addr::from(outside));
            }
        }
    }

    #[test]
    fn addresses_of_both_families_are_classified() {
        use AddressKind::{
            LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Translated,
        };
        for (address, expected) in [
            ("1.1.1.1", None),
            ("93.184.216.34", None),
            ("192.0.1.1", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("100.128.0.0", None),
            ("223.255.255.255", None),
            ("168.63.129.17", None),
            ("2606:4700:4700::1111", None),
            ("2001:200::1", None),
            ("2001:4860:4860::8888", None),
            ("3ffe:ffff::1", None),
            ("2003::1", None),
            ("0.0.0.0", Some(Loopback)),
            ("0.1.2.3", Some(Loopback)),
            ("127.255.255.254", Some(Loopback)),
            ("10.0.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("192.168.1.1", Some(Private)),
            ("169.254.169.254", Some(LinkLocal)),
            ("100.100.100.200", Some(Shared)),
            ("168.63.129.16", Some(Metadata)),
            ("192.0.0.192", Some(Reserved)),
            ("198.19.255.255", Some(Reserved)),
            ("224.0.0.1", Some(Multicast)),
            ("255.255.255.255", Some(Reserved)),
            ("::", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::2", Some(Translated)),
            ("::7f00:1", Some(Translated)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:a00:1", Some(Private)),
            ("::ffff:169.254.169.254", Some(LinkLocal)),
            ("::ffff:0:10.0.0.1", Some(Reserved)),
            ("64:ff9b::7f00:1", Some(Translated)),
            ("64:ff9b:1::1", Some(Translated)),
            ("100::1", Some(Reserved)),
            ("1fff:ffff::1", Some(Reserved)),
            ("2001::1", Some(Reserved)),
            ("2001:1ff:ffff::1", Some(Reserved)),
            ("2001:db8::1", Some(Reserved)),
            ("2002:7f00:1::", Some(Translated)),
            ("3fff:fff::1", Some(Reserved)),
            ("4000::1", Some(Reserved)),
            ("5f00::1", Some(Reserved)),
            ("fc00::1", Some(Private)),
            ("fd00:ec2::254", Some(Private)),
            ("fe80::1", Some(LinkLocal)),
            ("febf::1", Some(LinkLocal)),
            ("fec0::1", Some(Private)),
            ("ff02::1", Some(Multicast)),
            ("::ffff:8.8.8.8", None),
        ] {
            assert_eq!(check(address).err(), expected, "{address}");
        }
    }

    #[test]
    fn an_allowed_range_contains_its_addresses_in_every_spelling() {
        let policy = AddressPolicy::public()
            .allow("10.20.0.0/16".parse().unwrap())
            .allow("fd00:1::/32".parse().unwrap());
        for (address, allowed) in [
            ("10.20.0.0", true),
            ("10.20.255.255", true),
            ("::ffff:10.20.1.1", true),
            ("10.19.255.255", false),
            ("10.21.0.0", false),
            ("127.0.0.1", false),
            ("fd00:1::1", true),
            ("fd00:2::1", false),
            ("1.1.1.1", true),
        ] {
            assert_eq!(policy.check(address.parse().unwrap()).is_ok(), allowed, "{address}");
        }
    }
}
