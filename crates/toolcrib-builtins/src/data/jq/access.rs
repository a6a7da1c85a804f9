//! Access to parts of values, for the jq interpreter.

use std::ops::Range;
use std::rc::Rc;

use jaq_core::path::Opt;
use jaq_core::{Error, Exn, ValR, ValX};

use super::meter::tick;
use super::number::Number;
use super::value::{Array, Object, Text, Value};

type Bounds<'a> = jaq_core::val::Range<&'a Value>;

const ITERABLE: &str = "array or object";

impl jaq_core::ValT for Value {
    fn from_num(text: &str) -> ValR<Self> {
        // A number literal of a program; unlike JSON, jq allows `.5` and `1.`.
        let number = text.parse().map(Number::Integer);
        Ok(Self::Number(number.unwrap_or_else(|_| Number::Float(text.parse().unwrap_or(f64::NAN)))))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(members: I) -> ValR<Self> {
        let mut object = Object::new();
        for (key, value) in members {
            match key {
                Self::Text(key) => object.insert(key, value),
                other => return Err(Error::typ(other, "object key (a string)")),
            }
        }
        Ok(Self::Object(Rc::new(object)))
    }

    fn key_values(self) -> Box<dyn Iterator<Item = ValR<(Self, Self), Self>>> {
        tick();
        match self {
            Self::Array(array) => Box::new(
                (0..array.items().len())
                    .map(move |at| Ok((Self::from(at), array.items()[at].clone()))),
            ),
            Self::Object(object) => Box::new((0..object.members().len()).filter_map(move |at| {
                let (key, value) = object.members().get_index(at)?;
                Some(Ok((Self::Text(key.clone()), value.clone())))
            })),
            other => Box::new(std::iter::once(Err(Error::typ(other, ITERABLE)))),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Self>>> {
        Box::new(self.key_values().map(|member| member.map(|(_, value)| value)))
    }

    fn index(self, index: &Self) -> ValR<Self> {
        Ok(self.member(index)?.unwrap_or(Self::Null))
    }

    fn range(self, range: Bounds<'_>) -> ValR<Self> {
        tick();
        match self {
            Self::Null => Ok(Self::Null),
            Self::Array(array) => {
                let range = bounds(&range, array.items().len())?;
                Ok(array.items()[range].iter().cloned().collect())
            }
            Self::Text(text) => {
                let range = text_bounds(&range, text.as_str())?;
                Ok(Self::text(&text.as_str()[range]))
            }
            other => Err(Error::typ(other, "array or string")),
        }
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        match self {
            Self::Array(array) => array.items().iter().cloned().flat_map(f).collect(),
            Self::Object(object) => {
                let mut changed = Object::new();
                for (key, value) in object.members() {
                    if let Some(value) = f(value.clone()).next().transpose()? {
                        changed.insert(key.clone(), value);
                    }
                }
                Ok(Self::Object(Rc::new(changed)))
            }
            other => opt.fail(other, |value| Exn::from(Error::typ(value, ITERABLE))),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        index: &Self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        tick();
        match (self, index) {
            (value @ (Self::Null | Self::Array(_) | Self::Text(_)), Self::Object(range)) => {
                value.map_range(bounds_of(range), opt, f)
            }
            (Self::Object(object), Self::Text(key)) => map_member(object, key, f),
            (Self::Null, Self::Text(key)) => map_member(Rc::new(Object::new()), key, f),
            (Self::Array(array), Self::Number(at)) => map_item(array, at, opt, f),
            (Self::Null, Self::Number(at)) => map_item(Rc::new(Array::new()), at, opt, f),
            (value, index) => {
                opt.fail(value, |value| Exn::from(Error::index(value, index.clone())))
            }
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        range: Bounds<'_>,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        let mut array = match self {
            Self::Array(array) => array,
            Self::Null => Rc::new(Array::new()),
            other => return opt.fail(other, |value| Exn::from(Error::typ(value, "array"))),
        };
        let range = match bounds(&range, array.items().len()) {
            Ok(range) => range,
            Err(error) => return opt.fail(Self::Array(array), |_| Exn::from(error)),
        };
        let part = array.items()[range.clone()].iter().cloned().collect();
        let new = match f(part).next().transpose()? {
            None => Rc::new(Array::new()),
            Some(Self::Array(new)) => new,
            Some(other) => return Err(Exn::from(Error::typ(other, "array"))),
        };
        Rc::make_mut(&mut array).splice(range, &new);
        Ok(Self::Array(array))
    }

    fn as_bool(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    fn into_string(self) -> Self {
        match self {
            text @ Self::Text(_) => text,
            other => Self::text(other.to_json()),
        }
    }
}

impl Value {
    /// `.[index]`; `None` if there is no such member.
    pub(super) fn member(&self, index: &Self) -> ValR<Option<Self>, Self> {
        tick();
        Ok(match (self, index) {
            (Self::Null, Self::Null | Self::Text(_) | Self::Number(_)) => None,
            (Self::Object(object), Self::Text(key)) => object.members().get(key.as_str()).cloned(),
            (Self::Array(array), Self::Number(at)) => {
                place(at, array.items().len()).and_then(|at| array.items().get(at).cloned())
            }
            (Self::Null | Self::Array(_) | Self::Text(_), Self::Object(range)) => {
                Some(jaq_core::ValT::range(self.clone(), bounds_of(range))?)
            }
            (Self::Array(_), Self::Array(_)) => Some(self.indices(index)?),
            _ => return Err(Error::index(self.clone(), index.clone())),
        })
    }
}

fn map_member<'a, I: Iterator<Item = ValX<'a, Value>>>(
    mut object: Rc<Object>,
    key: &Text,
    f: impl Fn(Value) -> I,
) -> ValX<'a, Value> {
    let known = object.members().contains_key(key.as_str());
    let old = Rc::make_mut(&mut object).take(key.as_str());
    match f(old).next().transpose()? {
        Some(new) => Rc::make_mut(&mut object).insert(key.clone(), new),
        None if known => Rc::make_mut(&mut object).remove(key.as_str()),
        None => {}
    }
    Ok(Value::Object(object))
}

fn map_item<'a, I: Iterator<Item = ValX<'a, Value>>>(
    mut array: Rc<Array>,
    at: &Number,
    opt: Opt,
    f: impl Fn(Value) -> I,
) -> ValX<'a, Value> {
    let length = array.items().len();
    let Some(at) = place(at, length) else {
        let message = format_args!("index {} is out of bounds", at.as_f64()).to_string();
        return opt.fail(Value::Array(array), |_| Exn::from(Error::str(message)));
    };
    let old = if at < length { Rc::make_mut(&mut array).take(at) } else { Value::Null };
    match f(old).next().transpose()? {
        Some(new) => Rc::make_mut(&mut array).put(at, new),
        None if at < length => Rc::make_mut(&mut array).remove(at),
        None => {}
    }
    Ok(Value::Array(array))
}

/// The position of an index; a negative one counts from the end.
fn place(at: &Number, length: usize) -> Option<usize> {
    let at = at.as_f64().floor();
    if at.is_nan() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "saturating is what is meant")]
    let at = at as i64;
    match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => length.checked_sub(usize::try_from(at.unsigned_abs()).ok()?),
    }
}

fn bounds_of(range: &Object) -> Bounds<'_> {
    range.members().get("start")..range.members().get("end")
}

/// The range of a slice of a sequence of that length, clipped to it and never reversed.
fn bounds(range: &Bounds<'_>, length: usize) -> ValR<Range<usize>, Value> {
    let bound = |bound: Option<&Value>, default: usize, round: fn(f64) -> f64| match bound {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Number(at)) => {
            let at = Number::Float(round(at.as_f64()));
            Ok(place(&at, length).unwrap_or(0).min(length))
        }
        Some(other) => Err(Error::typ(other.clone(), "slice index (a number)")),
    };
    let start = bound(range.start, 0, f64::floor)?;
    let end = bound(range.end, length, f64::ceil)?;
    Ok(start..end.max(start))
}

/// Converts [`bounds`] from characters to bytes.
fn text_bounds(range: &Bounds<'_>, text: &str) -> ValR<Range<usize>, Value> {
    let range = bounds(range, text.chars().count())?;
    let mut offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
    let start = offsets.nth(range.start).unwrap_or(text.len());
    let end = match range.len() {
        0 => start,
        length => offsets.nth(length - 1).unwrap_or(text.len()),
    };
    Ok(start..end)
}

/// The operations that the standard library needs.
impl jaq_std::ValT for Value {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self {
            Self::Array(array) => Ok(array.items().iter().cloned().collect()),
            other => Err(other),
        }
    }

    fn is_int(&self) -> bool {
        matches!(self, Self::Number(number) if number.as_integer().is_some())
    }

    fn as_isize(&self) -> Option<isize> {
        match self {
            Self::Number(number) => number.as_integer()?.try_into().ok(),
            _ => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number.as_f64()),
            _ => None,
        }
    }

    fn is_utf8_str(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_str().as_bytes()),
            _ => None,
        }
    }

    fn as_sub_str(&self, part: &[u8]) -> Self {
        Self::text(String::from_utf8_lossy(part).into_owned())
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::text(String::from_utf8_lossy(bytes.as_ref()).into_owned())
    }
}
