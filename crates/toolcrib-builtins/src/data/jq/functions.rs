//! The native filters of a query: those of jaq that touch nothing but their input, and our own.

use std::collections::BTreeMap;

use jaq_core::native::{Filter, Fun, bome, run, unary, v};
use jaq_core::{Cv, Error, RunPtr, ValR};
use regex::{Captures, Regex, RegexBuilder};

use super::meter::{pause, tick};
use super::number::Number;
use super::program::Engine;
use super::value::{Text, Value};
use crate::data::json_text::JsonText;

/// Filters of jaq's library that queries do not get: environment, clock, time zone, log and exit of the host; and those
/// that are replaced by our own.
const WITHOUT: &[&str] = &[
    "env",
    "now",
    "localtime",
    "strflocaltime",
    "debug_empty",
    "stderr_empty",
    "halt",
    "matches",
    "split_matches",
    "split_",
];
/// Definitions of jaq's library that use those filters.
const WITHOUT_DEFINITIONS: &[&str] = &["stderr", "debug", "halt", "halt_error", "nan", "infinite"];

/// Definitions that jaq keeps in separate crates.
const DEFINITIONS: &str = include_str!("definitions.jq");

/// The largest compiled regular expression, in bytes; see [`MAX_SEARCHED_BYTES`].
const REGEX_BYTES: usize = 128 << 10;
/// The longest text that a regular expression is run on. One search cannot be interrupted; within these two limits it
/// takes tens of milliseconds at worst.
const MAX_SEARCHED_BYTES: usize = 1 << 20;

/// All named definitions.
pub(super) fn definitions() -> Vec<jaq_core::load::parse::Def<&'static str>> {
    let ours = jaq_core::load::parse(DEFINITIONS, |parser| parser.defs()).unwrap_or_default();
    jaq_core::defs()
        .chain(jaq_std::defs().filter(|known| !WITHOUT_DEFINITIONS.contains(&known.name)))
        .chain(ours)
        .collect()
}

/// All native filters.
pub(super) fn functions() -> impl Iterator<Item = Fun<Engine>> {
    jaq_core::funs::<Engine>()
        .chain(jaq_std::funs::<Engine>().filter(|(name, ..)| !WITHOUT.contains(name)))
        .chain(ours().into_iter().map(run::<Engine>))
}

fn ours() -> Vec<Filter<RunPtr<Engine>>> {
    vec![
        ("nan", v(0), |_| bome(Ok(Value::from(f64::NAN)))),
        ("infinite", v(0), |_| bome(Ok(Value::from(f64::INFINITY)))),
        ("tojson", v(0), |cv| bome(Ok(Value::text(cv.1.to_json())))),
        ("fromjson", v(0), |cv| bome(from_json(&cv.1))),
        ("length", v(0), |cv| bome(length(&cv.1))),
        ("contains", v(1), |cv| unary(cv, |value, part| Ok(Value::Bool(contains(&value, &part))))),
        ("has", v(1), |cv| unary(cv, |value, key| Ok(Value::Bool(value.member(&key)?.is_some())))),
        ("indices", v(1), |cv| unary(cv, |value, part| value.indices(&part))),
        ("bsearch", v(1), |cv| unary(cv, |value, wanted| binary_search(&value, &wanted))),
        ("matches", v(2), |cv| bome(search(cv, MatchOutput::Matches))),
        ("split_matches", v(2), |cv| bome(search(cv, MatchOutput::Both))),
        ("split_", v(2), |cv| bome(search(cv, MatchOutput::Between))),
    ]
}

fn from_json(value: &Value) -> ValR<Value> {
    let Value::Text(text) = value else { return Err(Error::typ(value.clone(), "string")) };
    let text = text.as_str();
    if text == "nan" || text == "NaN" {
        return Ok(Value::from(f64::NAN));
    }
    JsonText::check(text)
        .map(Value::read)
        .map_err(|problem| Error::str(format_args!("{value} is not JSON: {}", problem.reason)))
}

fn length(value: &Value) -> ValR<Value> {
    Ok(match value {
        Value::Null => Value::from(0_usize),
        Value::Number(Number::Integer(number)) if *number != i64::MIN => {
            Value::Number(Number::Integer(number.abs()))
        }
        Value::Number(number) => Value::from(number.as_f64().abs()),
        Value::Text(text) => Value::from(text.as_str().chars().count()),
        Value::Array(array) => Value::from(array.items().len()),
        Value::Object(object) => Value::from(object.members().len()),
        Value::Bool(_) => return Err(Error::str(format_args!("{value} has no length"))),
    })
}

fn contains(value: &Value, part: &Value) -> bool {
    tick();
    match (value, part) {
        (Value::Text(text), Value::Text(part)) => text.as_str().contains(part.as_str()),
        (Value::Array(array), Value::Array(parts)) => {
            parts.items().iter().all(|part| array.items().iter().any(|item| contains(item, part)))
        }
        (Value::Object(object), Value::Object(parts)) => {
            parts.members().iter().all(|(key, part)| {
                object.members().get(key.as_str()).is_some_and(|value| contains(value, part))
            })
        }
        _ => value == part,
    }
}

impl Value {
    /// The positions of a part: characters in text, items or runs of items in an array.
    pub(super) fn indices(&self, part: &Self) -> ValR<Self> {
        Ok(match (self, part) {
            (Self::Null, _) => Self::Null,
            (Self::Text(_), Self::Text(part)) if part.as_str().is_empty() => Self::from_iter([]),
            (Self::Text(text), Self::Text(part)) => {
                let offsets = text.as_str().char_indices().enumerate();
                let found = offsets
                    .filter(|(_, (offset, _))| text.as_str()[*offset..].starts_with(part.as_str()));
                found.map(|(at, _)| Self::from(at)).collect()
            }
            (Self::Array(_), Self::Array(part)) if part.items().is_empty() => Self::from_iter([]),
            (Self::Array(array), Self::Array(part)) => {
                let runs = array.items().windows(part.items().len()).enumerate();
                let found = runs.filter(|(_, run)| *run == part.items());
                found.map(|(at, _)| Self::from(at)).collect()
            }
            (Self::Array(array), part) => {
                let items = array.items().iter().enumerate();
                items.filter(|(_, item)| *item == part).map(|(at, _)| Self::from(at)).collect()
            }
            _ => return Err(Error::index(self.clone(), part.clone())),
        })
    }
}

fn binary_search(value: &Value, wanted: &Value) -> ValR<Value> {
    let Value::Array(array) = value else { return Err(Error::typ(value.clone(), "array")) };
    Ok(match array.items().binary_search(wanted) {
        Ok(at) => Value::from(at),
        Err(at) => (Value::from(-1_isize) - Value::from(at))?,
    })
}

/// The kind of result of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchOutput {
    Matches,
    Between,
    Both,
}

/// The flags of `test`, `match` and their kin.
#[derive(Default)]
struct RegexFlags {
    global: bool,
    skip_empty: bool,
}

fn compile(pattern: &Value, flags: &Value) -> ValR<(Regex, RegexFlags), Value> {
    let Value::Text(pattern) = pattern else {
        return Err(Error::typ(pattern.clone(), "regular expression (a string)"));
    };
    let given = match flags {
        Value::Null => "",
        Value::Text(flags) => flags.as_str(),
        other => return Err(Error::typ(other.clone(), "regex flags (a string)")),
    };
    let mut builder = RegexBuilder::new(pattern.as_str());
    builder.size_limit(REGEX_BYTES);
    let mut flags = RegexFlags::default();
    for flag in given.chars() {
        match flag {
            'g' => flags.global = true,
            'n' => flags.skip_empty = true,
            'i' => _ = builder.case_insensitive(true),
            'x' => _ = builder.ignore_whitespace(true),
            's' => _ = builder.dot_matches_new_line(true),
            'm' => _ = builder.multi_line(true),
            'p' => _ = builder.dot_matches_new_line(true).multi_line(true),
            'l' => _ = builder.swap_greed(true),
            other => return Err(Error::str(format_args!("`{other}` is not a regex flag"))),
        }
    }
    let regex = builder
        .build()
        .map_err(|error| Error::str(format_args!("not a regular expression: {error}")))?;
    Ok((regex, flags))
}

fn search(mut cv: Cv<'_, Engine>, wanted: MatchOutput) -> ValR<Value> {
    let flags = cv.0.pop_var();
    let pattern = cv.0.pop_var();
    let Value::Text(text) = &cv.1 else { return Err(Error::typ(cv.1, "string")) };
    let text = text.as_str();
    if text.len() > MAX_SEARCHED_BYTES {
        return Err(Error::str(format_args!(
            "a regular expression searches at most {MAX_SEARCHED_BYTES} bytes at a time"
        )));
    }
    let (regex, flags) = compile(&pattern, &flags)?;
    let mut positions = CharacterOffsets { text, offset: 0, characters: 0 };
    let mut found = Vec::new();
    let mut end_of_last = 0;
    for captures in regex.captures_iter(text) {
        // Each match is a separate search, which may read the rest of the text.
        pause();
        let whole = captures.get_match();
        if flags.skip_empty && whole.is_empty() {
            continue;
        }
        if wanted != MatchOutput::Matches {
            found.push(Value::text(&text[end_of_last..whole.start()]));
            end_of_last = whole.end();
        }
        if wanted != MatchOutput::Between {
            found.push(groups(&regex, &captures, &mut positions));
        }
        if !flags.global {
            break;
        }
    }
    if wanted != MatchOutput::Matches {
        found.push(Value::text(&text[end_of_last..]));
    }
    Ok(found.into_iter().collect())
}

/// The whole match and its groups, each as `{offset, length, string, name?}`; a group without a match has offset -1.
fn groups(regex: &Regex, captures: &Captures<'_>, positions: &mut CharacterOffsets<'_>) -> Value {
    let starts: Vec<usize> = captures.iter().flatten().map(|group| group.start()).collect();
    let characters: BTreeMap<usize, usize> = {
        let mut starts = starts;
        starts.sort_unstable();
        starts.into_iter().map(|start| (start, positions.characters_before(start))).collect()
    };
    let named = captures.iter().zip(regex.capture_names());
    named
        .map(|(group, name)| {
            let (offset, length, string) = match group {
                Some(group) => (
                    Value::from(characters.get(&group.start()).copied().unwrap_or_default()),
                    Value::from(group.as_str().chars().count()),
                    Value::text(group.as_str()),
                ),
                None => (Value::from(-1_isize), Value::from(0_usize), Value::Null),
            };
            let members = [("offset", offset), ("length", length), ("string", string)];
            let name = name.map(|name| ("name", Value::text(name)));
            let members = members.into_iter().chain(name);
            Value::object(members.map(|(key, value)| (Text::new(key), value)))
        })
        .collect()
}

/// Converts byte offsets to character offsets, which only increase from match to match.
struct CharacterOffsets<'a> {
    text: &'a str,
    offset: usize,
    characters: usize,
}

impl CharacterOffsets<'_> {
    fn characters_before(&mut self, offset: usize) -> usize {
        if offset < self.offset {
            // Without look-behind a group starts within its match; handle an earlier start anyway.
            return self.text[..offset].chars().count();
        }
        self.characters += self.text[self.offset..offset].chars().count();
        self.offset = offset;
        self.characters
    }
}
