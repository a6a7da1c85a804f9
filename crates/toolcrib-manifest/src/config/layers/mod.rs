//! Layered settings: a file, overridden by single values from variables and flags. Every value and
//! every problem has its origin.

pub(crate) mod key_places;
mod place;
mod schema;
pub(crate) mod secret_filter;

use jsonschema::{PatternOptions, Validator};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use crate::diagnostic::position::{Span, line_column, without_bom};
use crate::diagnostic::violation::ValidatedValue;
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::document::{Format, Node, NodeValue, parse};
use place::SettingSchema;
pub use schema::schema_of;
use secret_filter::{SecretFilter, is_hidden, known_path};

/// A value that overrides the file: its key, its value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    origin: String,
    path: Vec<String>,
    given: SettingValue,
}

#[derive(Debug, Clone, PartialEq)]
enum SettingValue {
    /// Text, parsed by the type of the key.
    Text(String),
    Value(Value),
}

impl Setting {
    /// A value as text, which is parsed by the type of the key: numbers and booleans, lists and
    /// mappings as YAML in brackets (`[a, b]`), a single text for a list as a list with one item,
    /// `null` for keys that may be null, and everything else as text.
    ///
    /// `origin` is the name of the variable or the flag. `path` is the list of keys that leads to
    /// the value.
    pub fn text<P: Into<String>>(
        origin: impl Into<String>,
        path: impl IntoIterator<Item = P>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            origin: origin.into(),
            path: path.into_iter().map(Into::into).collect(),
            given: SettingValue::Text(text.into()),
        }
    }

    /// A value that needs no parsing.
    pub fn value<P: Into<String>>(
        origin: impl Into<String>,
        path: impl IntoIterator<Item = P>,
        value: Value,
    ) -> Self {
        Self {
            origin: origin.into(),
            path: path.into_iter().map(Into::into).collect(),
            given: SettingValue::Value(value),
        }
    }

    /// Its origin: the name of a variable, or a flag.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The key, with dots.
    pub fn key(&self) -> String {
        self.path.join(".")
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The default.
    Default,
    /// The file.
    File {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// A [`Setting`], by its origin.
    Setting(String),
}

/// A problem of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerProblem {
    /// The origin of the invalid [`Setting`]; `None` for the file.
    pub origin: Option<String>,
    /// The problem. Its place is in the file's text; for a setting it has no meaning.
    pub diagnostic: Diagnostic,
}

impl LayerProblem {
    /// The problem as text in the style of a compiler ([`Diagnostic::render`]); `file` and `text`
    /// are those of the file.
    pub fn render(&self, file: &str, text: &str, colour: bool) -> String {
        match &self.origin {
            None => self.diagnostic.render(file, text, colour),
            Some(origin) => self.diagnostic.render(origin, "", colour),
        }
    }

    /// The problem in one line for logs and for other people, without any text from the file or the
    /// value except a misspelt key ([`Diagnostic::report`]); `file` and `text` are those of the file.
    pub fn report(&self, file: &str, text: &str) -> String {
        match &self.origin {
            None => self.diagnostic.report(file, text),
            Some(origin) => self.diagnostic.report(origin, ""),
        }
    }
}

/// A value of a type, read from all layers.
#[derive(Debug, Clone)]
pub struct Layered<T> {
    /// The value.
    pub value: T,
    node: Option<Node>,
    text: String,
    settings: Vec<(Vec<String>, String)>,
}

impl<T> Layered<T> {
    /// The origin of the value at a path.
    pub fn origin<P: AsRef<str>>(&self, path: &[P]) -> Origin {
        let is_at_or_above = |set: &[String]| {
            set.len() <= path.len() && set.iter().zip(path).all(|(set, own)| set == own.as_ref())
        };
        let set = self.settings.iter().rev().find(|(set, _)| is_at_or_above(set));
        if let Some((_, origin)) = set {
            return Origin::Setting(origin.clone());
        }
        let found = path.iter().try_fold(self.node.as_ref().map(|node| (node, None)), |at, key| {
            let entry = at?.0.entry(key.as_ref())?;
            Some(Some((&entry.node, Some(entry))))
        });
        match found.flatten() {
            Some((node, entry)) if !path.is_empty() => {
                let (line, column) = line_column(&self.text, node.visible_span(entry).start);
                Origin::File { line, column }
            }
            _ => Origin::Default,
        }
    }
}

impl<T: JsonSchema> Layered<T> {
    /// The file's text; empty without a file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A problem with the value at a path of keys and list positions, at the place of that value.
    /// Secrets are masked in the excerpt; the message is used as it is.
    pub fn problem_at<P: AsRef<str>>(&self, path: &[P], mut problem: Diagnostic) -> LayerProblem {
        if let Origin::Setting(origin) = self.origin(path) {
            problem.span = 0..0;
            return LayerProblem { origin: Some(origin), diagnostic: problem };
        }
        let escaped = |key: &P| format!("/{}", key.as_ref().replace('~', "~0").replace('/', "~1"));
        let pointer: String = path.iter().map(escaped).collect();
        let root = self.node.as_ref();
        let found = root.map(|root| (root, root.at_pointer(&pointer)));
        // If the file contains nothing of the path, the place is its beginning.
        let written = found.filter(|(root, (node, _))| !std::ptr::eq(*root, *node));
        problem.span = written.map_or(0..0, |(_, (node, entry))| node.visible_span(entry));
        SecretFilter::over(&schema_of::<T>(), &self.text, self.node.as_ref()).blank(&mut problem);
        of_file(problem)
    }
}

/// Reads a type from an optional file (its name and text) and from settings. Settings override the
/// file, and later settings override earlier ones. A value of the
/// file that a setting overrides has to be valid as well.
///
/// ```
/// use toolcrib_manifest::layers::{Origin, Setting, decode_layers};
///
/// #[derive(Default, serde::Deserialize, schemars::JsonSchema)]
/// #[serde(default)]
/// struct Config { workers: u16, names: Vec<String> }
///
/// let file = ("config.yml", "workers: 2\nnames: [a]\n");
/// let set = [Setting::text("APP__WORKERS", ["workers"], "4")];
/// let read = decode_layers::<Config>(Some(file), &set).map_err(|problems| problems.len()).unwrap();
/// assert_eq!(read.value.workers, 4);
/// assert_eq!(read.origin(&["workers"]), Origin::Setting("APP__WORKERS".to_owned()));
/// assert_eq!(read.origin(&["names"]), Origin::File { line: 2, column: 8 });
///
/// let wrong = [Setting::text("APP__WORKER", ["worker"], "4")];
/// let problems = decode_layers::<Config>(None, &wrong).err().unwrap();
/// assert_eq!(problems[0].diagnostic.help.as_deref(), Some("did you mean `workers`?"));
/// ```
///
/// # Errors
/// All problems of the file and of the settings.
pub fn decode_layers<T: DeserializeOwned + JsonSchema>(
    file: Option<(&str, &str)>,
    settings: &[Setting],
) -> Result<Layered<T>, Vec<LayerProblem>> {
    let checker = Checker::new(schema_of::<T>());
    let mut problems = Vec::new();
    let text = file.map(|(_, text)| without_bom(text)).unwrap_or_default();
    let mut findings = Findings::new(text);
    let node = file.and_then(|(name, _)| parse(Format::of(name), &mut findings));
    // With such errors the tree lacks a part of the file.
    let is_whole = !findings.has_errors();
    let mut value = Value::Object(Map::new());
    if let Some(node) = &node {
        if !matches!(node.value, NodeValue::Null) {
            value = node.to_value();
            drop_empty_sections(&checker.schema, &mut Vec::new(), &mut value);
        }
        checker.check(node, &value, "", &mut findings);
    }
    if findings.has_errors() {
        let mut found = findings.finish();
        SecretFilter::over(&checker.schema, text, node.as_ref().filter(|_| is_whole))
            .apply(&mut found);
        problems.extend(found.into_iter().map(of_file));
    }
    let of_file_alone = (!settings.is_empty()).then(|| value.clone());
    for setting in settings {
        // A flag may set a part of an entry whose other keys are in the file.
        let base = if problems.is_empty() { value.clone() } else { Value::Object(Map::new()) };
        match read(setting, &checker, base) {
            Ok(read) => put(&mut value, &setting.path, read),
            Err(found) => problems.extend(found.into_iter().map(|found| of(setting, found))),
        }
    }
    let sources = settings.iter().map(|setting| (setting.path.clone(), setting.origin.clone()));
    let layered = Layered { value: (), node, text: text.to_owned(), settings: sources.collect() };
    if !problems.is_empty() {
        return Err(problems);
    }
    let value = serde_path_to_error::deserialize(value)
        .map_err(|error| vec![layered.refusal(&error, &checker.schema)])?;
    let Layered { node, text, settings, .. } = layered;
    // A value of the file has to be right even if a setting replaces it, so that the file is good or bad for
    // every program that reads it.
    if let Some(Err(error)) = of_file_alone.map(serde_path_to_error::deserialize::<_, T>) {
        let file = Layered { value: (), node, text, settings: Vec::new() };
        return Err(vec![file.refusal(&error, &checker.schema)]);
    }
    Ok(Layered { value, node, text, settings })
}

/// The value at a path of a file, whatever else is wrong with the file; `None` if it does not exist
/// or the file's syntax is invalid.
pub fn value_at(file: (&str, &str), path: &[&str]) -> Option<Value> {
    let (name, text) = file;
    let mut findings = Findings::new(without_bom(text));
    let node = parse(Format::of(name), &mut findings)?;
    let found = path.iter().try_fold(&node, |node, key| Some(&node.entry(key)?.node))?;
    Some(found.to_value())
}

/// Removes every mapping and list that is null because its content is commented out, so that it
/// gets its default, as if its key were commented out too. Reading it as empty could disable the
/// protection of the default.
fn drop_empty_sections(schema: &Value, path: &mut Vec<String>, value: &mut Value) {
    let Value::Object(entries) = value else { return };
    entries.retain(|key, value| {
        path.push(key.clone());
        let is_kept = !value.is_null() || !SettingSchema::is_section(schema, path);
        if is_kept {
            drop_empty_sections(schema, path, value);
        }
        path.pop();
        is_kept
    });
}

impl Layered<()> {
    /// The error of the type's own deserializer, at the place of the value.
    fn refusal(
        &self,
        error: &serde_path_to_error::Error<serde_json::Error>,
        schema: &Value,
    ) -> LayerProblem {
        let segments = error.path().iter().map(|segment| match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => String::new(),
        });
        let path: Vec<String> = segments.collect();
        let escaped = |key: &String| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let pointer: String = path.iter().map(escaped).collect();
        let found = self.node.as_ref().map(|node| node.at_pointer(&pointer));
        let nothing = Node::without_place(&Value::Null);
        let key = error.path().to_string();
        let node = found.map_or(&nothing, |(node, _)| node);
        // An error about a whole mapping is about its keys.
        let is_mapping = matches!(node.value, NodeValue::Mapping(_));
        let is_hidden = !is_mapping && is_hidden(schema, &pointer, node);
        // The first line is the problem, the others are the repair.
        let told = error.inner().to_string();
        let (problem, help) = match told.split_once('\n') {
            Some((problem, help)) => (problem, Some(help.to_owned())),
            None => (told.as_str(), None),
        };
        let (message, help) = if is_hidden {
            (format!("`{key}`: the value is not allowed here, and is not shown"), None)
        } else {
            (format!("`{key}`: {problem}"), help)
        };
        let refused = |place: Span| {
            let refused = Diagnostic::error("invalid-value", &place, message);
            refused.maybe_help(help).at_key(known_path(schema, &pointer))
        };
        if let Origin::Setting(origin) = self.origin(&path) {
            return LayerProblem { origin: Some(origin), diagnostic: refused(0..0) };
        }
        let place = found.map(|(node, entry)| node.visible_span(entry));
        let mut found = [refused(place.unwrap_or(0..0))];
        SecretFilter::over(schema, &self.text, self.node.as_ref()).apply(&mut found);
        let [found] = found;
        of_file(found)
    }
}

fn of_file(diagnostic: Diagnostic) -> LayerProblem {
    LayerProblem { origin: None, diagnostic }
}

fn of(setting: &Setting, diagnostic: Diagnostic) -> LayerProblem {
    LayerProblem { origin: Some(setting.origin.clone()), diagnostic }
}

/// The checked value of a setting. `whole` is what it is set in.
fn read(setting: &Setting, checker: &Checker, mut whole: Value) -> Result<Value, Vec<Diagnostic>> {
    let place =
        SettingSchema::find(&checker.schema, &setting.path).map_err(|problem| vec![*problem])?;
    let value = match &setting.given {
        SettingValue::Value(value) => value.clone(),
        SettingValue::Text(text) => place.read(text).map_err(|problem| {
            let hidden = "the value cannot be read, and is not shown".to_owned();
            let problem = if place.has_secrets() { hidden } else { problem };
            let message = format!("`{}`: {problem}", setting.key());
            vec![Diagnostic::error("syntax", &(0..0), message)]
        })?,
    };
    put(&mut whole, &setting.path, value.clone());
    let node = Node::without_place(&whole);
    let mut findings = Findings::new("");
    let prefix = format!("`{}`: ", setting.key());
    checker.check(&node, &whole, &prefix, &mut findings);
    if !findings.has_errors() {
        return Ok(value);
    }
    Err(findings.finish())
}

/// Sets a value at a path, and creates the mappings on the way.
fn put(whole: &mut Value, path: &[String], value: Value) {
    match path.split_first() {
        None => *whole = value,
        Some((key, rest)) => {
            if !whole.is_object() {
                *whole = Value::Object(Map::new());
            }
            if let Value::Object(entries) = whole {
                put(entries.entry(key.clone()).or_insert(Value::Null), rest, value);
            }
        }
    }
}

/// A type's schema, compiled once for all layers.
struct Checker {
    schema: Value,
    validator: Result<Validator, String>,
}

impl Checker {
    fn new(schema: Value) -> Self {
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex()).offline();
        let validator = options.build(&schema).map_err(|error| error.to_string());
        Self { schema, validator }
    }

    /// Adds a diagnostic for each violation of the schema.
    fn check(&self, node: &Node, value: &Value, prefix: &str, findings: &mut Findings<'_>) {
        match &self.validator {
            Ok(validator) if !validator.is_valid(value) => {
                let (schema, severity) = (&self.schema, Severity::Error);
                let subject = ValidatedValue { node, schema, code: "", severity, prefix };
                subject.report(validator.iter_errors(value), findings);
            }
            Ok(_) => {}
            Err(error) => {
                let message = format!("the type's own schema cannot be used: {error}");
                findings.add(Diagnostic::error("invalid-value", &(0..0), message));
            }
        }
    }
}
