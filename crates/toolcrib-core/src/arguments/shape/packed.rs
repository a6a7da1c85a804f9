//! The tables of a shape in one piece of memory.
//!
//! A validation in a table that no cache of the processor holds waits for each piece of it, for one after
//! the other where the first says where the next is. One piece that lies in a row is asked for at once.

use std::sync::Arc;

use super::{Bounds, Few, Name, Rule};
use crate::prefetch::{LINE, prefetch};

/// Lines of memory asked for at most: processors keep track of ten to fifty.
const AT_ONCE: usize = 16;

const HEAD: usize = 20;
const RULE: usize = 32;
const BOUNDS: usize = 40;
const NAME: usize = 8;
const ALTERNATIVE: usize = 2;

/// What a shape says, before it is packed.
pub(super) struct Tables<'t> {
    pub(super) root: u16,
    pub(super) whole: bool,
    pub(super) rules: &'t [Rule],
    pub(super) bounds: &'t [Bounds],
    pub(super) names: &'t [Name],
    pub(super) alternatives: &'t [u16],
    pub(super) text: &'t str,
}

/// The same, packed.
#[derive(Debug, Clone)]
pub(super) struct Packed(Arc<[u8]>);

/// The parts of a [`Packed`].
#[derive(Clone, Copy)]
pub(super) struct Parts<'p> {
    pub(super) root: u16,
    rules: &'p [[u8; RULE]],
    bounds: &'p [[u8; BOUNDS]],
    names: &'p [[u8; NAME]],
    alternatives: &'p [[u8; ALTERNATIVE]],
    text: &'p [u8],
}

/// A [`Rule`] where it lies.
#[derive(Clone, Copy)]
pub(super) struct PackedRule<'p>(&'p [u8; RULE]);

impl Packed {
    pub(super) fn of(tables: &Tables<'_>) -> Self {
        let Tables { root, whole, rules, bounds, names, alternatives, text } = tables;
        let mut head = Writer::<HEAD>::default();
        head.u16(*root);
        head.u16(u16::from(*whole));
        for count in [rules.len(), bounds.len(), names.len(), alternatives.len()] {
            // Of more there is not enough here to be taken apart, and nothing is certain.
            head.put(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        }
        let mut all = Vec::from(head.bytes);
        all.extend(rules.iter().flat_map(Rule::packed));
        all.extend(bounds.iter().flat_map(Bounds::packed));
        all.extend(names.iter().copied().flat_map(Name::packed));
        all.extend(alternatives.iter().flat_map(|rule| rule.to_le_bytes()));
        all.extend(text.bytes());
        Self(all.into())
    }

    /// Asks for all of it, or for as much as a processor can wait for at once.
    #[inline]
    pub(super) fn prefetch(&self) {
        let (lines, rest) = self.0.as_chunks::<LINE>();
        let firsts = lines.iter().map(|line| &line[0]).chain(rest.last());
        firsts.take(AT_ONCE).for_each(prefetch);
    }

    pub(super) fn is_whole(&self) -> bool {
        self.0.first_chunk::<HEAD>().is_some_and(|head| u16_at(head, 2) != 0)
    }

    #[inline]
    pub(super) fn parts(&self) -> Option<Parts<'_>> {
        let (head, rest) = self.0.split_first_chunk::<HEAD>()?;
        let bytes = |at, size| (u32_at(head, at) as usize).checked_mul(size);
        let (rules, rest) = rest.split_at_checked(bytes(4, RULE)?)?;
        let (bounds, rest) = rest.split_at_checked(bytes(8, BOUNDS)?)?;
        let (names, rest) = rest.split_at_checked(bytes(12, NAME)?)?;
        let (alternatives, text) = rest.split_at_checked(bytes(16, ALTERNATIVE)?)?;
        Some(Parts {
            root: u16_at(head, 0),
            rules: rules.as_chunks().0,
            bounds: bounds.as_chunks().0,
            names: names.as_chunks().0,
            alternatives: alternatives.as_chunks().0,
            text,
        })
    }
}

impl<'p> Parts<'p> {
    #[inline]
    pub(super) fn rule(self, rule: u16) -> PackedRule<'p> {
        PackedRule(&self.rules[usize::from(rule)])
    }

    /// The bounds of a rule, if it has any.
    #[inline]
    pub(super) fn bounds(self, rule: PackedRule<'_>) -> Option<Bounds> {
        let place = rule.bounds().checked_sub(1)?;
        self.bounds.get(usize::from(place)).map(Bounds::unpacked)
    }

    #[inline]
    pub(super) fn names(self, few: Few) -> impl ExactSizeIterator<Item = Name> + 'p {
        few.of(self.names).iter().copied().map(Name::unpacked)
    }

    #[inline]
    pub(super) fn alternatives(self, few: Few) -> impl Iterator<Item = u16> + 'p {
        few.of(self.alternatives).iter().map(|rule| u16::from_le_bytes(*rule))
    }

    /// Whether the name is written so.
    #[inline]
    pub(super) fn spells(self, name: Name, text: &[u8]) -> bool {
        let (start, len) = (name.start as usize, usize::from(name.len));
        len == text.len() && self.text[start..start + len] == *text
    }
}

impl PackedRule<'_> {
    #[inline]
    pub(super) fn required(self) -> u64 {
        u64::from_le_bytes(bytes_at(self.0, 0))
    }

    #[inline]
    pub(super) fn kinds(self) -> u16 {
        u16_at(self.0, 8)
    }

    #[inline]
    pub(super) fn words(self) -> Few {
        few_at(self.0, 10)
    }

    #[inline]
    pub(super) fn properties(self) -> Few {
        few_at(self.0, 14)
    }

    #[inline]
    pub(super) fn alternatives(self) -> Few {
        few_at(self.0, 18)
    }

    #[inline]
    pub(super) fn others(self) -> u16 {
        u16_at(self.0, 22)
    }

    #[inline]
    pub(super) fn items(self) -> u16 {
        u16_at(self.0, 24)
    }

    #[inline]
    pub(super) fn bounds(self) -> u16 {
        u16_at(self.0, 26)
    }
}

impl Rule {
    fn packed(&self) -> [u8; RULE] {
        let Self { required, kinds, words, properties, others, items, bounds, alternatives } =
            *self;
        let mut writer = Writer::default();
        writer.put(&required.to_le_bytes());
        writer.u16(kinds);
        for few in [words, properties, alternatives] {
            writer.u16(few.first);
            writer.u16(few.count);
        }
        for one in [others, items, bounds] {
            writer.u16(one);
        }
        writer.bytes
    }
}

impl Bounds {
    fn packed(&self) -> [u8; BOUNDS] {
        let Self { least, greatest, above_least, below_greatest, unique, length, items } = *self;
        let mut writer = Writer::default();
        writer.put(&least.to_le_bytes());
        writer.put(&greatest.to_le_bytes());
        for one in [length.0, length.1, items.0, items.1] {
            writer.put(&one.to_le_bytes());
        }
        writer.put(&[above_least, below_greatest, unique].map(u8::from));
        writer.bytes
    }

    #[inline]
    fn unpacked(bytes: &[u8; BOUNDS]) -> Self {
        Self {
            least: f64_at(bytes, 0),
            greatest: f64_at(bytes, 8),
            length: (u32_at(bytes, 16), u32_at(bytes, 20)),
            items: (u32_at(bytes, 24), u32_at(bytes, 28)),
            above_least: bytes[32] != 0,
            below_greatest: bytes[33] != 0,
            unique: bytes[34] != 0,
        }
    }
}

impl Name {
    fn packed(self) -> [u8; NAME] {
        let mut writer = Writer::default();
        writer.put(&self.start.to_le_bytes());
        writer.u16(self.len);
        writer.u16(self.rule);
        writer.bytes
    }

    #[inline]
    fn unpacked(bytes: [u8; NAME]) -> Self {
        Self { start: u32_at(&bytes, 0), len: u16_at(&bytes, 4), rule: u16_at(&bytes, 6) }
    }
}

/// Fills a record from its beginning.
struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Default for Writer<N> {
    fn default() -> Self {
        Self { bytes: [0; N], at: 0 }
    }
}

impl<const N: usize> Writer<N> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn u16(&mut self, number: u16) {
        self.put(&number.to_le_bytes());
    }
}

#[inline]
fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

#[inline]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

#[inline]
fn f64_at<const N: usize>(bytes: &[u8; N], at: usize) -> f64 {
    f64::from_le_bytes(bytes_at(bytes, at))
}

/// Copied in one piece, which the compiler makes one load of; byte by byte it makes as many.
#[inline]
fn bytes_at<const N: usize, const M: usize>(bytes: &[u8; N], at: usize) -> [u8; M] {
    let mut copied = [0; M];
    copied.copy_from_slice(&bytes[at..at + M]);
    copied
}

#[inline]
fn few_at<const N: usize>(bytes: &[u8; N], at: usize) -> Few {
    Few { first: u16_at(bytes, at), count: u16_at(bytes, at + 2) }
}
