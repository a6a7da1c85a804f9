//! Lets the JSON Schema validator read a tape in place.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp};
use jsonschema_value::LazyInstance;
use serde::Deserialize as _;
use serde_json::Value;
use toolcrib_json::{Cursor, Items, Kind, Members, Numbers, Tape, write_canonical};

use crate::arguments::number_view::{NumberView, SchemaNumbers};

/// The representation: instances are places in a tape.
#[derive(Debug)]
pub struct TapeJson;

/// The work budget of one validation, and what it has used.
///
/// A schema can make a validator look at the same place again and again: alternatives within
/// alternatives do so exponentially. Each visit of a place costs one step. When the steps are used
/// up, or enough problems were found, arrays and objects appear to be empty, so that the validator
/// ends. Its verdict is then meaningless, and [`ran_out`](Self::ran_out) is true.
#[derive(Debug)]
pub struct Bounds<'s> {
    steps: Cell<u64>,
    problems: Cell<u32>,
    numbers: &'s SchemaNumbers,
    /// The first number the validator visited that no double can represent.
    inexact: Cell<Option<u32>>,
}

/// Steps per place of a tape. Every schema keyword that visits a place takes about one.
const STEPS_PER_PLACE: u64 = 100;
/// Steps that every tape gets.
const STEPS: u64 = 100_000;

impl<'s> Bounds<'s> {
    /// A budget in proportion to the size of a tape. `problems` limits how many may be found, and
    /// `numbers` are those of the schema.
    pub fn of(tape: &Tape<'_>, problems: u32, numbers: &'s SchemaNumbers) -> Self {
        let places = u64::try_from(tape.places()).unwrap_or(u64::MAX);
        let steps = places.saturating_mul(STEPS_PER_PLACE).saturating_add(STEPS);
        Self {
            steps: Cell::new(steps),
            problems: Cell::new(problems),
            numbers,
            inexact: Cell::new(None),
        }
    }

    /// The place of a number that the validator could not compare exactly. Its verdict is then
    /// meaningless.
    pub fn inexact(&self) -> Option<u32> {
        self.inexact.get()
    }

    /// Notes that a number could not be compared exactly.
    pub(super) fn note_inexact(&self, place: Cursor<'_>) {
        self.inexact.set(self.inexact.get().or(Some(place.index())));
    }

    /// The numbers of the schema.
    pub(super) fn numbers(&self) -> &'s SchemaNumbers {
        self.numbers
    }

    /// Whether the steps were used up.
    pub fn ran_out(&self) -> bool {
        self.steps.get() == 0
    }

    /// Whether the maximum number of problems was found.
    pub fn is_full(&self) -> bool {
        self.problems.get() == 0
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.ran_out() || self.is_full()
    }

    /// Takes steps; `false` if the validator has to end.
    #[inline]
    pub(super) fn take(&self, steps: u32) -> bool {
        self.steps.set(self.steps.get().saturating_sub(u64::from(steps)));
        !self.is_over()
    }
}

/// A place in a tape, or a property's name on its own (for `propertyNames`).
#[derive(Debug, Clone, Copy)]
pub enum View<'a> {
    /// A place in a tape.
    At(Cursor<'a>, &'a Bounds<'a>),
    /// A property's name.
    Name(&'a str),
}

/// The instance that a problem reports: not the value, which would be copied for each problem, but
/// the index of its place, from which [`reported`] finds it.
fn report(place: Cursor<'_>, bounds: &Bounds<'_>) -> Value {
    let left = bounds.problems.get();
    bounds.problems.set(left.saturating_sub(1));
    let index = Value::from(place.index());
    if left == 0 || bounds.ran_out() { Value::Array(vec![index]) } else { index }
}

/// Where a problem is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reported<'a> {
    /// At this place.
    At(Cursor<'a>),
    /// At this place, but after the [`Bounds`] were reached: the problem may not be real.
    Late(Cursor<'a>),
    /// In a property's name.
    Name,
}

/// Finds the place that a problem reports.
pub(crate) fn reported<'a>(tape: &'a Tape<'_>, instance: &Value) -> Reported<'a> {
    let index = |value: &Value| tape.at(value.as_u64()?.try_into().ok()?);
    let late = || index(instance.as_array()?.first()?);
    match (index(instance), late()) {
        (Some(place), _) => Reported::At(place),
        (None, Some(place)) => Reported::Late(place),
        (None, None) => Reported::Name,
    }
}

impl Json for TapeJson {
    type Node<'a> = View<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    // A lookup scans the members, so one pass over them replaces several lookups.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View::Name(string))
    }
}

impl<'a> Node<'a, TapeJson> for View<'a> {
    type Object = ObjectView<'a>;
    type Array = ArrayView<'a>;
    type Number = NumberView<'a>;

    fn as_object(&self) -> Option<ObjectView<'a>> {
        match self {
            Self::At(cursor, bounds) if cursor.kind() == Kind::Object => {
                bounds.take(1).then_some(ObjectView(*cursor, bounds))
            }
            _ => None,
        }
    }

    fn as_array(&self) -> Option<ArrayView<'a>> {
        match self {
            Self::At(cursor, bounds) if cursor.kind() == Kind::Array => {
                bounds.take(1).then_some(ArrayView(*cursor, bounds))
            }
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::At(cursor, _) => cursor.as_str(),
            Self::Name(name) => Some(Cow::Borrowed(name)),
        }
    }

    fn as_number(&self) -> Option<NumberView<'a>> {
        match self {
            Self::At(cursor, bounds) => NumberView::at(*cursor, bounds),
            Self::Name(_) => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            Self::At(cursor, _) if cursor.kind() == Kind::True => Some(true),
            Self::At(cursor, _) if cursor.kind() == Kind::False => Some(false),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::At(cursor, _) if cursor.kind() == Kind::Null)
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::At(cursor, _) if cursor.kind().is_number())
    }

    fn is_string(&self) -> bool {
        match self {
            Self::At(cursor, _) => cursor.kind().is_string(),
            Self::Name(_) => true,
        }
    }

    fn json_type(&self) -> JsonType {
        let Self::At(cursor, _) = self else { return JsonType::String };
        match cursor.kind() {
            Kind::Null => JsonType::Null,
            Kind::True | Kind::False => JsonType::Boolean,
            Kind::String | Kind::EscapedString => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
            _ => JsonType::Number,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (Self::At(cursor, _), Value::String(text)) => cursor.equals(text),
            (Self::Name(name), Value::String(text)) => name == text,
            (_, Value::Null) => self.is_null(),
            (_, Value::Bool(truth)) => self.as_boolean() == Some(*truth),
            (_, Value::Number(expected)) => {
                self.as_number().is_some_and(|number| cmp::equal_numbers(&number, expected))
            }
            // If kind or size differ, the contents are not visited.
            (Self::At(cursor, bounds), Value::Array(items)) => {
                cursor.kind() == Kind::Array
                    && cursor.len() == items.len()
                    && bounds.take(places(*cursor))
                    && cursor
                        .items()
                        .zip(items)
                        .all(|(item, expected)| View::At(item, bounds).equals_value(expected))
            }
            (Self::At(cursor, bounds), Value::Object(members)) => {
                cursor.kind() == Kind::Object
                    && cursor.len() == members.len()
                    && bounds.take(places(*cursor))
                    && cursor.members().all(|(name, value)| {
                        let expected = members.get(&*name.key_text());
                        expected.is_some_and(|it| View::At(value, bounds).equals_value(it))
                    })
            }
            (Self::Name(_), _) => false,
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            Self::At(cursor, bounds) => {
                let places = cursor.places();
                bounds.take(places.end - places.start);
                // Reading into a `Value` cannot fail.
                Value::deserialize(*cursor).unwrap_or_default()
            }
            Self::Name(name) => Value::from(*name),
        })
    }

    fn lazy_value(&self) -> LazyInstance<'a> {
        LazyInstance::Ready(Cow::Owned(match self {
            Self::At(cursor, bounds) => report(*cursor, bounds),
            Self::Name(name) => Value::from(*name),
        }))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            Self::At(cursor, _) => {
                let (address, tag) = cursor.identity();
                Some(NodeIdentity::tagged(address, tag))
            }
            Self::Name(_) => None,
        }
    }
}

/// The steps that visiting each item or member of a value takes.
fn places(value: Cursor<'_>) -> u32 {
    u32::try_from(value.len()).unwrap_or(u32::MAX).saturating_add(1)
}

/// An object in a tape.
#[derive(Debug, Clone, Copy)]
pub struct ObjectView<'a>(Cursor<'a>, &'a Bounds<'a>);

impl<'a> Object<'a, TapeJson> for ObjectView<'a> {
    type Node = View<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = MemberViews<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &Box<str>) -> Option<View<'a>> {
        self.0.get(key).map(|value| View::At(value, self.1))
    }

    fn members(&self) -> MemberViews<'a> {
        MemberViews(self.0.members(), self.1)
    }
}

/// The members of an object in a tape.
#[derive(Debug, Clone)]
pub struct MemberViews<'a>(Members<'a>, &'a Bounds<'a>);

impl<'a> Iterator for MemberViews<'a> {
    type Item = (Cow<'a, str>, View<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        self.1.take(1).then(|| (key.key_text(), View::At(value, self.1)))
    }
}

/// An array in a tape.
#[derive(Debug, Clone, Copy)]
pub struct ArrayView<'a>(Cursor<'a>, &'a Bounds<'a>);

impl<'a> Array<'a, TapeJson> for ArrayView<'a> {
    type Node = View<'a>;
    type ElementsIter = ItemViews<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ItemViews<'a> {
        ItemViews(self.0.items(), self.1)
    }

    /// Compares the items by their canonical text, in one pass.
    fn is_unique(&self) -> bool {
        let places = self.0.places();
        if self.0.len() < 2 || !self.1.take(places.end - places.start) {
            return true;
        }
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.items().all(|item| {
            let mut spelling = String::new();
            write_canonical(item, Numbers::ByValue, &mut spelling);
            seen.insert(spelling)
        })
    }
}

/// The items of an array in a tape.
#[derive(Debug, Clone)]
pub struct ItemViews<'a>(Items<'a>, &'a Bounds<'a>);

impl<'a> Iterator for ItemViews<'a> {
    type Item = View<'a>;

    #[inline]
    fn next(&mut self) -> Option<View<'a>> {
        let item = self.0.next()?;
        self.1.take(1).then_some(View::At(item, self.1))
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_json::parse;

    use super::*;

    #[test]
    fn the_tape_keeps_the_validators_contract() {
        let text = jsonschema::json::conformance::document().to_string();
        let tape = parse(&text).expect("the document parses");
        jsonschema::json::conformance::assert_conformance::<TapeJson>(&View::At(
            tape.root(),
            &Bounds::of(&tape, 1, &SchemaNumbers::default()),
        ));
    }
}
