//! What plainly fits a schema, told from a small table.
//!
//! Most schemas are made of the same few keywords: types, properties, bounds, lists of words. A
//! [`Shape`] is those as two short tables beside each other, where a compiled validator is many
//! objects all over the memory, so that among thousands of tools most of a validation is waiting
//! for it to come into the caches.
//!
//! It says "fits" only if that is certain. Whatever it does not know, and whatever does not fit, is
//! the validator's to judge, which also says what is wrong: there is one reading of the standard,
//! and this is a short way to one of its two answers. The property that holds them together is in
//! the tests below.

mod packed;
mod read;

use toolcrib_json::{Cursor, Kind, Number};

use self::packed::{Packed, PackedRule, Parts};

/// The plain part of a schema. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Shape(Packed);

/// What a value must be. Everything it names lies in the tables of its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    /// Which properties must be there, a bit for each of `properties`.
    required: u64,
    /// Which kinds of values fit, a bit for each; and [`KINDS_ONLY`].
    kinds: u16,
    /// The words a string must be one of, if there are any.
    words: Few,
    /// The properties of an object that are spoken of.
    properties: Few,
    /// The rule of all other properties.
    others: u16,
    /// The rule of the items of an array.
    items: u16,
    /// Where its bounds are, counted from 1; 0 for none.
    bounds: u16,
    /// Rules one of which must hold too, if there are any.
    alternatives: Few,
}

/// A run of neighbours in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Few {
    first: u16,
    count: u16,
}

impl Few {
    fn of<T>(self, table: &[T]) -> &[T] {
        &table[usize::from(self.first)..][..usize::from(self.count)]
    }
}

/// A property's name and rule, or a word.
#[derive(Debug, Clone, Copy)]
struct Name {
    start: u32,
    len: u16,
    rule: u16,
}

/// Both ends are within.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Of a number.
    least: f64,
    greatest: f64,
    /// The number must not be one of its bounds.
    above_least: bool,
    below_greatest: bool,
    /// No two items are alike.
    unique: bool,
    /// Code points of a string.
    length: (u32, u32),
    /// Items of an array.
    items: (u32, u32),
}

/// The rule that everything fits.
const ANYTHING: u16 = 0;
/// The rule of which nothing is certain, also that of `false`.
const UNCERTAIN: u16 = 1;

/// The bit of a rule that says nothing but which kinds fit.
const KINDS_ONLY: u16 = 1 << 15;

/// As far as every integer is a double of its own.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// How many alternatives are tried in one value: where they nest, their number multiplies.
const ATTEMPTS: u32 = 1000;

impl Shape {
    /// Whether all of the schema was understood, so that it is a schema that a validator can be made
    /// of.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.is_whole()
    }

    /// Asks for its memory, which is in no cache if it is the schema of one tool among thousands.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.0.prefetch();
    }

    /// Whether the value fits for certain.
    pub(crate) fn fits(&self, value: Cursor<'_>) -> bool {
        let Some(parts) = self.0.parts() else { return false };
        Trial { parts, attempts: ATTEMPTS }.fits(parts.root, value)
    }
}

/// One value held against a shape.
struct Trial<'s> {
    parts: Parts<'s>,
    attempts: u32,
}

impl<'s> Trial<'s> {
    #[inline]
    fn fits(&mut self, rule: u16, value: Cursor<'_>) -> bool {
        let rule = self.parts.rule(rule);
        let (kind, kinds) = (value.kind(), rule.kinds());
        kinds & bit(kind) != 0 && (kinds & KINDS_ONLY != 0 || self.fits_closely(rule, kind, value))
    }

    /// All but the kind.
    fn fits_closely(&mut self, rule: PackedRule<'s>, kind: Kind, value: Cursor<'_>) -> bool {
        let fits = match kind {
            Kind::Null | Kind::True | Kind::False => true,
            Kind::Object => self.object(rule, value),
            Kind::Array => self.array(rule, value),
            Kind::String | Kind::EscapedString => self.string(rule, value),
            _ => self.number(rule, value),
        };
        let alternatives = rule.alternatives();
        fits && (alternatives.count == 0 || self.any(alternatives, value))
    }

    fn object(&mut self, rule: PackedRule<'s>, object: Cursor<'_>) -> bool {
        let parts = self.parts;
        let properties = rule.properties();
        let mut given = 0_u64;
        for (name, value) in object.members() {
            if name.kind() != Kind::String {
                return false;
            }
            let name = name.raw_bytes();
            let mut known = parts.names(properties).enumerate();
            let of_value = match known.find(|&(_, known)| parts.spells(known, name)) {
                Some((place, known)) => {
                    given |= 1 << place;
                    known.rule
                }
                None => rule.others(),
            };
            if !self.fits(of_value, value) {
                return false;
            }
        }
        rule.required() & !given == 0
    }

    fn array(&mut self, rule: PackedRule<'s>, array: Cursor<'_>) -> bool {
        if let Some(bounds) = self.parts.bounds(rule) {
            let len = array.len();
            if !within(bounds.items, len) || bounds.unique && len > 1 {
                return false;
            }
        }
        let items = rule.items();
        let kinds = self.parts.rule(items).kinds();
        if kinds & KINDS_ONLY != 0 {
            // Mostly all that is said of items is their type.
            return items == ANYTHING || array.items().all(|item| kinds & bit(item.kind()) != 0);
        }
        array.items().all(|item| self.fits(items, item))
    }

    fn string(&self, rule: PackedRule<'s>, string: Cursor<'_>) -> bool {
        let (parts, words) = (self.parts, rule.words());
        let bounds = parts.bounds(rule);
        if words.count == 0 && bounds.is_none() {
            return true;
        }
        // What an escape stands for is not looked up here.
        if string.kind() == Kind::EscapedString {
            return false;
        }
        let text = string.raw_bytes();
        if words.count > 0 && !parts.names(words).any(|word| parts.spells(word, text)) {
            return false;
        }
        bounds.is_none_or(|bounds| {
            // A code point is one to four bytes: mostly the bytes tell.
            let (least, most) = bounds.length;
            text.len() <= most as usize && text.len() / 4 >= least as usize
                || within(bounds.length, code_points(text))
        })
    }

    fn number(&self, rule: PackedRule<'s>, number: Cursor<'_>) -> bool {
        let Some(bounds) = self.parts.bounds(rule) else { return true };
        #[expect(clippy::cast_precision_loss, reason = "none is lost so far")]
        let value = match number.number() {
            Some(Number::Unsigned(value)) if value <= EXACT => value as f64,
            Some(Number::Negative(value)) if value.unsigned_abs() <= EXACT => value as f64,
            Some(Number::Float(value)) if number.kind() == Kind::Float => value,
            _ => return false,
        };
        (if bounds.above_least { value > bounds.least } else { value >= bounds.least })
            && (if bounds.below_greatest {
                value < bounds.greatest
            } else {
                value <= bounds.greatest
            })
    }

    fn any(&mut self, alternatives: Few, value: Cursor<'_>) -> bool {
        let parts = self.parts;
        parts.alternatives(alternatives).any(|rule| {
            self.attempts = self.attempts.saturating_sub(1);
            self.attempts > 0 && self.fits(rule, value)
        })
    }
}

impl Rule {
    /// Notes whether there is anything to look at but the kind.
    fn noted(mut self) -> Self {
        let has_more = self.required != 0
            || [self.words, self.properties, self.alternatives].iter().any(|few| few.count > 0)
            || self.others != ANYTHING
            || self.items != ANYTHING
            || self.bounds != 0;
        self.kinds = if has_more { self.kinds & !KINDS_ONLY } else { self.kinds | KINDS_ONLY };
        self
    }
}

const fn bit(kind: Kind) -> u16 {
    1 << kind as u16
}

fn within((least, most): (u32, u32), count: usize) -> bool {
    least as usize <= count && count <= most as usize
}

/// How many code points a valid UTF-8 text has: all bytes but those that go on with one.
fn code_points(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests;
