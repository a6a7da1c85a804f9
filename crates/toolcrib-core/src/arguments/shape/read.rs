//! A schema → its [`Shape`].

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use toolcrib_json::Kind;

use super::packed::{Packed, Tables};
use super::{ANYTHING, Bounds, EXACT, Few, KINDS_ONLY, Name, Rule, Shape, UNCERTAIN, bit};

/// The drafts in which the keywords that are read here mean the same. Without `$schema` it is the
/// first.
const DRAFTS: [&str; 6] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-06/schema",
];

/// How deep a schema is read.
const MAX_DEPTH: usize = 64;
/// As many properties of one object as `required` has bits.
const MAX_PROPERTIES: usize = u64::BITS as usize;
/// With how many rules a new one is compared.
const COMPARED: usize = 256;

/// The schema says something that this does not read.
struct Unread;

type Read<T> = Result<T, Unread>;

const NOTHING: u16 = 0;
const STRINGS: u16 = bit(Kind::String) | bit(Kind::EscapedString);
/// A number beyond 64 bits is an integer too, which the validator knows better.
const INTEGERS: u16 = bit(Kind::Unsigned) | bit(Kind::Negative);
const NUMBERS: u16 =
    INTEGERS | bit(Kind::WideInteger) | bit(Kind::Float) | bit(Kind::IntegralFloat);
const BOOLEANS: u16 = bit(Kind::True) | bit(Kind::False);
const ALL: u16 =
    bit(Kind::Null) | BOOLEANS | NUMBERS | STRINGS | bit(Kind::Array) | bit(Kind::Object);

const ANY_RULE: Rule = Rule {
    required: 0,
    kinds: ALL | KINDS_ONLY,
    words: Few { first: 0, count: 0 },
    properties: Few { first: 0, count: 0 },
    others: ANYTHING,
    items: ANYTHING,
    bounds: 0,
    alternatives: Few { first: 0, count: 0 },
};
const NO_RULE: Rule = Rule { kinds: KINDS_ONLY, ..ANY_RULE };

const NO_BOUNDS: Bounds = Bounds {
    least: f64::NEG_INFINITY,
    greatest: f64::INFINITY,
    above_least: false,
    below_greatest: false,
    unique: false,
    length: (0, u32::MAX),
    items: (0, u32::MAX),
};

impl Shape {
    /// Reads what it can; of the rest nothing is certain, nor of a `format` that asserts.
    pub(crate) fn of(schema: &Value, assert_formats: bool) -> Self {
        let mut reader = Reader {
            document: schema,
            assert_formats,
            rules: vec![ANY_RULE, NO_RULE],
            names: Vec::new(),
            bounds: Vec::new(),
            alternatives: Vec::new(),
            text: String::new(),
            references: HashMap::new(),
            whole: true,
        };
        let root = reader.rule(schema, 0);
        reader.look_over_definitions();
        let Reader { rules, names, bounds, alternatives, text, whole, .. } = &reader;
        let (whole, text) = (*whole, text.as_str());
        Self(Packed::of(&Tables { root, whole, rules, bounds, names, alternatives, text }))
    }
}

struct Reader<'s> {
    document: &'s Value,
    assert_formats: bool,
    rules: Vec<Rule>,
    names: Vec<Name>,
    bounds: Vec<Bounds>,
    alternatives: Vec<u16>,
    text: String,
    /// The rules of what references point to.
    references: HashMap<&'s str, u16>,
    whole: bool,
}

impl<'s> Reader<'s> {
    /// The rule of a schema.
    fn rule(&mut self, schema: &'s Value, depth: usize) -> u16 {
        let rule = match schema {
            Value::Bool(true) => Ok(ANYTHING),
            Value::Bool(false) => Ok(UNCERTAIN),
            Value::Object(keywords) if keywords.contains_key("$ref") => {
                self.reference(keywords, depth)
            }
            _ => self.read(schema, depth).and_then(|rule| self.place(rule)),
        };
        rule.unwrap_or_else(|Unread| {
            self.whole = false;
            UNCERTAIN
        })
    }

    /// Where the rule stands; equal rules stand in one place.
    fn place(&mut self, rule: Rule) -> Read<u16> {
        match self.rules.iter().take(COMPARED).position(|known| *known == rule) {
            Some(known) => u16::try_from(known).map_err(|_| Unread),
            None => push(&mut self.rules, rule),
        }
    }

    /// Reads what no reference pointed to, only to know whether all of it can be read.
    fn look_over_definitions(&mut self) {
        let document = self.document;
        let lengths = (
            self.rules.len(),
            self.names.len(),
            self.bounds.len(),
            self.alternatives.len(),
            self.text.len(),
        );
        for key in ["$defs", "definitions"] {
            let definitions = document.get(key).and_then(Value::as_object);
            for (name, definition) in definitions.into_iter().flatten() {
                if !self.references.contains_key(format!("#/{key}/{name}").as_str()) {
                    self.rule(definition, 1);
                }
            }
        }
        self.rules.truncate(lengths.0);
        self.names.truncate(lengths.1);
        self.bounds.truncate(lengths.2);
        self.alternatives.truncate(lengths.3);
        self.text.truncate(lengths.4);
    }

    /// The rule a reference points to. While that is being read its place holds a rule of which
    /// nothing is certain, so that a schema that is only itself leads nowhere.
    fn reference(&mut self, keywords: &'s Map<String, Value>, depth: usize) -> Read<u16> {
        for (keyword, value) in keywords {
            // Older drafts ignore what stands beside it, newer ones do not.
            if keyword != "$ref" && !self.annotates(keyword, value, depth)? {
                return Err(Unread);
            }
        }
        let target = keywords.get("$ref").and_then(Value::as_str).ok_or(Unread)?;
        if let Some(&known) = self.references.get(target) {
            return Ok(known);
        }
        let document = self.document;
        let schema = match target.strip_prefix("#/") {
            None if target == "#" => document,
            Some(path) => {
                let (key, name) = path.split_once('/').ok_or(Unread)?;
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
                if !matches!(key, "$defs" | "definitions") || !name.bytes().all(is_plain) {
                    return Err(Unread);
                }
                document.get(key).and_then(|all| all.get(name)).ok_or(Unread)?
            }
            None => return Err(Unread),
        };
        let place = push(&mut self.rules, NO_RULE)?;
        self.references.insert(target, place);
        let rule = match schema {
            Value::Object(keywords) if keywords.contains_key("$ref") => {
                let further = self.reference(keywords, depth + 1)?;
                self.rules[usize::from(further)]
            }
            _ => self.read(schema, depth + 1)?,
        };
        self.rules[usize::from(place)] = rule;
        Ok(place)
    }

    /// Whether the keyword says nothing about values.
    fn annotates(&self, keyword: &str, value: &Value, depth: usize) -> Read<bool> {
        let is_well_formed = match keyword {
            "format" if self.assert_formats => false,
            "title" | "description" | "$comment" | "format" => value.is_string(),
            "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
            "examples" => value.is_array(),
            "default" => true,
            "$schema" => depth == 0 && value.as_str().is_some_and(|uri| DRAFTS.contains(&uri)),
            "$defs" | "definitions" => depth == 0 && value.is_object(),
            _ => return Ok(keyword.starts_with("x-")),
        };
        // What is not well formed is for the validator to refuse.
        if is_well_formed { Ok(true) } else { Err(Unread) }
    }

    fn read(&mut self, schema: &'s Value, depth: usize) -> Read<Rule> {
        let keywords = match schema {
            Value::Bool(true) => return Ok(ANY_RULE),
            Value::Bool(false) => return Ok(NO_RULE),
            Value::Object(keywords) if depth < MAX_DEPTH => keywords,
            _ => return Err(Unread),
        };
        let mut rule = ANY_RULE;
        let mut bounds = NO_BOUNDS;
        let mut has_bounds = false;
        for (keyword, value) in keywords {
            let mut bound = || has_bounds = true;
            match keyword.as_str() {
                "type" => rule.kinds &= kinds(value)?,
                "enum" => self.words(&mut rule, list(value)?)?,
                "const" => self.words(&mut rule, std::slice::from_ref(value))?,
                "oneOf" => self.named_words(&mut rule, list(value)?, depth)?,
                "anyOf" => {
                    let choices = list(value)?;
                    let rules: Vec<u16> =
                        choices.iter().map(|choice| self.rule(choice, depth + 1)).collect();
                    rule.alternatives = append(&mut self.alternatives, rules)?;
                }
                "items" => {
                    if value.is_array() {
                        return Err(Unread);
                    }
                    rule.items = self.rule(value, depth + 1);
                }
                "additionalProperties" => rule.others = self.rule(value, depth + 1),
                // Read below: they belong together.
                "properties" | "required" => {}
                "minLength" => (bounds.length.0, ()) = (count(value)?, bound()),
                "maxLength" => (bounds.length.1, ()) = (count(value)?, bound()),
                "minItems" => (bounds.items.0, ()) = (count(value)?, bound()),
                "maxItems" => (bounds.items.1, ()) = (count(value)?, bound()),
                "uniqueItems" => {
                    (bounds.unique, ()) = (value.as_bool().ok_or(Unread)?, bound());
                }
                "minimum" | "exclusiveMinimum" => {
                    // Which of two is the stricter is the validator's to say.
                    if bounds.least > f64::NEG_INFINITY {
                        return Err(Unread);
                    }
                    (bounds.least, ()) = (exact(value)?, bound());
                    bounds.above_least = keyword == "exclusiveMinimum";
                }
                "maximum" | "exclusiveMaximum" => {
                    if bounds.greatest < f64::INFINITY {
                        return Err(Unread);
                    }
                    (bounds.greatest, ()) = (exact(value)?, bound());
                    bounds.below_greatest = keyword == "exclusiveMaximum";
                }
                _ if self.annotates(keyword, value, depth)? => {}
                _ => return Err(Unread),
            }
        }
        self.properties(&mut rule, keywords, depth)?;
        if has_bounds {
            rule.bounds = push(&mut self.bounds, bounds)? + 1;
        }
        Ok(rule.noted())
    }

    /// `properties` and `required`.
    fn properties(
        &mut self,
        rule: &mut Rule,
        keywords: &'s Map<String, Value>,
        depth: usize,
    ) -> Read<()> {
        let mut known: Vec<(&'s str, u16)> = Vec::new();
        if let Some(properties) = keywords.get("properties") {
            for (name, schema) in properties.as_object().ok_or(Unread)? {
                known.push((name, self.rule(schema, depth + 1)));
            }
        }
        if let Some(required) = keywords.get("required") {
            let mut seen = HashSet::new();
            for name in required.as_array().ok_or(Unread)? {
                let name = name.as_str().filter(|name| seen.insert(*name)).ok_or(Unread)?;
                let place = known.iter().position(|(known, _)| *known == name);
                let place = place.unwrap_or_else(|| {
                    known.push((name, rule.others));
                    known.len() - 1
                });
                if place < MAX_PROPERTIES {
                    rule.required |= 1 << place;
                }
            }
        }
        if known.len() > MAX_PROPERTIES {
            return Err(Unread);
        }
        rule.properties = self.append_names(known)?;
        Ok(())
    }

    /// A string must be one of these words; nothing else fits but a null that is among them.
    fn words(&mut self, rule: &mut Rule, values: &'s [Value]) -> Read<()> {
        let mut seen = HashSet::new();
        let mut kinds = NOTHING;
        let mut words = Vec::new();
        for value in values {
            match value {
                Value::Null => kinds |= bit(Kind::Null),
                Value::String(word) => {
                    kinds |= STRINGS;
                    words.push((word.as_str(), ANYTHING));
                }
                _ => return Err(Unread),
            }
            if !seen.insert(value.as_str()) {
                return Err(Unread);
            }
        }
        if rule.words.count > 0 {
            return Err(Unread);
        }
        rule.kinds &= kinds;
        rule.words = self.append_names(words)?;
        Ok(())
    }

    /// A list of words that are described one by one, which generators write as `oneOf`.
    fn named_words(&mut self, rule: &mut Rule, choices: &'s [Value], depth: usize) -> Read<()> {
        let mut words = Vec::new();
        let mut seen = HashSet::new();
        for choice in choices {
            let keywords = choice.as_object().ok_or(Unread)?;
            for (keyword, value) in keywords {
                let is_plain = match keyword.as_str() {
                    "const" => value.is_string(),
                    "type" => value == "string",
                    _ => self.annotates(keyword, value, depth + 1)?,
                };
                if !is_plain {
                    return Err(Unread);
                }
            }
            let word = keywords.get("const").and_then(Value::as_str).ok_or(Unread)?;
            if !seen.insert(word) {
                return Err(Unread);
            }
            words.push((word, ANYTHING));
        }
        if rule.words.count > 0 {
            return Err(Unread);
        }
        rule.kinds &= STRINGS;
        rule.words = self.append_names(words)?;
        Ok(())
    }

    fn append_names(&mut self, names: Vec<(&str, u16)>) -> Read<Few> {
        let mut entries = Vec::with_capacity(names.len());
        for (name, rule) in names {
            let start = u32::try_from(self.text.len()).map_err(|_| Unread)?;
            let len = u16::try_from(name.len()).map_err(|_| Unread)?;
            self.text.push_str(name);
            entries.push(Name { start, len, rule });
        }
        append(&mut self.names, entries)
    }
}

/// Adds to a table; its place there.
fn push<T>(table: &mut Vec<T>, entry: T) -> Read<u16> {
    let place = u16::try_from(table.len()).ok().filter(|place| *place < u16::MAX).ok_or(Unread)?;
    table.push(entry);
    Ok(place)
}

fn append<T>(table: &mut Vec<T>, entries: Vec<T>) -> Read<Few> {
    let first = u16::try_from(table.len()).map_err(|_| Unread)?;
    let count = u16::try_from(entries.len()).map_err(|_| Unread)?;
    table.extend(entries);
    Ok(Few { first, count })
}

/// A list that has something in it.
fn list(value: &Value) -> Read<&Vec<Value>> {
    value.as_array().filter(|list| !list.is_empty()).ok_or(Unread)
}

fn kinds(value: &Value) -> Read<u16> {
    let of = |name: &Value| {
        Ok(match name.as_str().ok_or(Unread)? {
            "null" => bit(Kind::Null),
            "boolean" => BOOLEANS,
            "integer" => INTEGERS,
            "number" => NUMBERS,
            "string" => STRINGS,
            "array" => bit(Kind::Array),
            "object" => bit(Kind::Object),
            _ => return Err(Unread),
        })
    };
    if !value.is_array() {
        return of(value);
    }
    let mut seen = HashSet::new();
    let mut kinds = NOTHING;
    for name in list(value)? {
        if !seen.insert(name.as_str()) {
            return Err(Unread);
        }
        kinds |= of(name)?;
    }
    Ok(kinds)
}

fn count(value: &Value) -> Read<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok()).ok_or(Unread)
}

/// A bound that a double holds as it is written.
fn exact(value: &Value) -> Read<f64> {
    let number = value.as_number().ok_or(Unread)?;
    let magnitude = match (number.as_u64(), number.as_i64()) {
        (Some(unsigned), _) => unsigned,
        (None, Some(negative)) => negative.unsigned_abs(),
        (None, None) => 0,
    };
    number.as_f64().filter(|bound| bound.is_finite() && magnitude <= EXACT).ok_or(Unread)
}
