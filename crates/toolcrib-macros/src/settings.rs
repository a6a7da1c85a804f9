//! Parses the settings in `#[tool(…)]`.

use std::fmt::Display;
use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitBool, LitInt, LitStr, Path, Token, bracketed, parenthesized};

/// Every setting, in the order of the documentation.
const KNOWN: &[&str] = &[
    "name",
    "title",
    "category",
    "tags",
    "version",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "hidden",
    "final_output",
    "terminal",
    "parallel",
    "blocking",
    "timeout",
    "wind_down",
    "output_chars",
    "max_concurrent",
    "rate",
    "cache",
    "dedupe",
    "retry",
    "reads",
    "writes",
    "approval",
    "task",
    "refresh_every",
    "refresh",
    "validate",
    "plan",
    "preview",
    "available",
    "inject",
    "empty_as_absent",
    "examples",
];

/// A parameter that the host fills in.
pub(crate) struct Inject {
    pub(crate) parameter: String,
    pub(crate) context_key: String,
    pub(crate) required: bool,
}

/// How long and for which calls answers are cached.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cached {
    /// `None` for the executor's default.
    pub(crate) ttl: Option<Duration>,
    /// Whatever the tool reads from its context.
    pub(crate) shared: bool,
}

/// The settings as written; `None` and empty mean "not set".
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) version: Option<String>,
    /// Boolean settings that were set, by the name of their builder method.
    pub(crate) switches: Vec<(Ident, bool)>,
    pub(crate) blocking: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) wind_down: Option<Duration>,
    pub(crate) output_chars: Option<usize>,
    pub(crate) max_concurrent: Option<usize>,
    /// The number of calls, and the constructor for its period.
    pub(crate) rate: Option<(u32, Ident)>,
    pub(crate) cache: Option<Cached>,
    /// The variant's name.
    pub(crate) dedupe: Option<Ident>,
    pub(crate) retry: Option<u32>,
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
    /// The variant's name.
    pub(crate) approval: Option<Ident>,
    pub(crate) task: Option<Ident>,
    pub(crate) refresh_every: Option<Duration>,
    /// A function that returns the current definition.
    pub(crate) refresh: Option<Path>,
    /// A function that checks the arguments.
    pub(crate) validate: Option<Path>,
    /// A function that describes what a call would do.
    pub(crate) plan: Option<Path>,
    /// A function that says what is being written.
    pub(crate) preview: Option<Path>,
    /// A function that checks whether the tool can run.
    pub(crate) available: Option<Path>,
    pub(crate) inject: Vec<Inject>,
    pub(crate) empty_as_absent: Vec<String>,
    /// JSON objects, as compact text.
    pub(crate) examples: Vec<String>,
}

impl Settings {
    fn switch(&self, name: &str) -> Option<bool> {
        self.switches.iter().find(|(known, _)| known == name).map(|(_, on)| *on)
    }
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut settings = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key = Ident::parse_any(input)?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("`{key}` is set twice")));
            }
            settings.read(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let contradiction = seen.iter().find(|key| *key == "destructive").filter(|_| {
            settings.switch("read_only") == Some(true)
                && settings.switch("destructive") == Some(true)
        });
        if let Some(key) = contradiction {
            return Err(Error::new(key.span(), "a `read_only` tool destroys nothing"));
        }
        let key_of = |name: &str| seen.iter().find(|key| *key == name);
        let idempotent = settings.switch("idempotent") == Some(true);
        if let Some(key) = key_of("cache")
            && !(idempotent && settings.switch("read_only") == Some(true))
        {
            let problem = "only a tool that is `read_only` and `idempotent` may be cached";
            return Err(Error::new(key.span(), problem));
        }
        if let Some(key) = key_of("dedupe")
            && settings.dedupe.as_ref().is_some_and(|word| word == "Session")
            && !(idempotent && settings.switch("read_only") == Some(true))
        {
            let problem = "only a tool that is `read_only` and `idempotent` may use `dedupe = \
                           \"session\"`: the second of two equal calls would not run";
            return Err(Error::new(key.span(), problem));
        }
        if let Some(key) = key_of("retry").filter(|_| !idempotent) {
            let problem = "only an `idempotent` tool may have retries";
            return Err(Error::new(key.span(), problem));
        }
        if let Some(key) = key_of("refresh_every").filter(|_| settings.refresh.is_none()) {
            let problem =
                "`refresh_every` needs a fn that returns the definition: add `refresh = FN`";
            return Err(Error::new(key.span(), problem));
        }
        Ok(settings)
    }
}

impl Settings {
    fn read(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match key.to_string().as_str() {
            "name" => {
                let name = text(input)?;
                check_name(&name.value()).map_err(|problem| Error::new(name.span(), problem))?;
                self.name = Some(name.value());
            }
            "title" => self.title = Some(text(input)?.value()),
            "category" => self.category = Some(text(input)?.value()),
            "version" => self.version = Some(text(input)?.value()),
            "tags" => self.tags = values(&texts(input)?),
            "empty_as_absent" => self.empty_as_absent = values(&texts(input)?),
            "read_only" | "destructive" | "idempotent" | "open_world" | "hidden"
            | "final_output" | "terminal" | "parallel" => {
                self.switches.push((key.clone(), switch(input)?));
            }
            "blocking" => self.blocking = Some(switch(input)?),
            "timeout" => self.timeout = Some(duration(&text(input)?)?),
            "wind_down" => self.wind_down = Some(duration(&text(input)?)?),
            "refresh_every" => self.refresh_every = Some(duration(&text(input)?)?),
            "output_chars" => self.output_chars = Some(number(input)?),
            "max_concurrent" => self.max_concurrent = Some(number::<NonZeroUsize>(input)?.get()),
            "retry" => self.retry = Some(number::<NonZeroU32>(input)?.get()),
            "rate" => self.rate = Some(rate(&text(input)?)?),
            "cache" => self.cache = Some(cached(input)?),
            "dedupe" => {
                let words = [("session", "Session"), ("batch", "Batch"), ("none", "None")];
                self.dedupe = Some(word(&text(input)?, &words)?);
            }
            "approval" => {
                let words =
                    [("never", "Never"), ("destructive", "Destructive"), ("always", "Always")];
                self.approval = Some(word(&text(input)?, &words)?);
            }
            "task" => {
                let words = [("never", "Never"), ("auto", "Auto"), ("required", "Required")];
                self.task = Some(word(&text(input)?, &words)?);
            }
            "reads" => self.reads = values(&texts(input)?),
            "writes" => self.writes = values(&texts(input)?),
            "refresh" => self.refresh = Some(path(input)?),
            "validate" => self.validate = Some(path(input)?),
            "plan" => self.plan = Some(path(input)?),
            "preview" => self.preview = Some(path(input)?),
            "available" => self.available = Some(path(input)?),
            "inject" => self.inject = injections(input)?,
            "examples" => {
                self.examples = texts(input)?.iter().map(example).collect::<syn::Result<_>>()?;
            }
            unknown => return Err(Error::new(key.span(), unknown_setting(unknown))),
        }
        Ok(())
    }
}

/// Checks a tool's name against the rule that all providers share.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    Err(format!("{name:?} is not a tool name: use 1 to 64 letters (A-Z, a-z), digits, `_` or `-`"))
}

/// `= "…"`.
fn text(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Nothing, `= "60s"`, or `(ttl = "60s", shared)`.
fn cached(input: ParseStream<'_>) -> syn::Result<Cached> {
    let mut cached = Cached::default();
    if input.peek(Token![=]) {
        cached.ttl = Some(duration(&text(input)?)?);
    } else if input.peek(syn::token::Paren) {
        let list;
        parenthesized!(list in input);
        while !list.is_empty() {
            let key = Ident::parse_any(&list)?;
            match key.to_string().as_str() {
                "ttl" => cached.ttl = Some(duration(&text(&list)?)?),
                "shared" => cached.shared = switch(&list)?,
                _ => return Err(Error::new(key.span(), "write `ttl = \"60s\"` or `shared`")),
            }
            if !list.is_empty() {
                list.parse::<Token![,]>()?;
            }
        }
    }
    Ok(cached)
}

/// `= path::to::a_fn`.
fn path(input: ParseStream<'_>) -> syn::Result<Path> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// `("…", …)` or `= ["…", …]`.
fn texts(input: ParseStream<'_>) -> syn::Result<Punctuated<LitStr, Token![,]>> {
    let list;
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        bracketed!(list in input);
    } else {
        parenthesized!(list in input);
    }
    Punctuated::parse_terminated(&list)
}

fn values(texts: &Punctuated<LitStr, Token![,]>) -> Vec<String> {
    texts.iter().map(LitStr::value).collect()
}

/// Nothing, `= true` or `= false`.
fn switch(input: ParseStream<'_>) -> syn::Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
}

/// `= N`.
fn number<N: FromStr<Err: Display>>(input: ParseStream<'_>) -> syn::Result<N> {
    input.parse::<Token![=]>()?;
    input.parse::<LitInt>()?.base10_parse()
}

/// Translates one of the words to its enum variant.
fn word(literal: &LitStr, words: &[(&str, &str)]) -> syn::Result<Ident> {
    let text = literal.value();
    let known = words.iter().find(|(word, _)| *word == text);
    known.map(|(_, variant)| Ident::new(variant, literal.span())).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        Error::new(literal.span(), format!("write one of {}", known.join(", ")))
    })
}

/// Calls per `s`, `min` or `h`.
fn rate(literal: &LitStr) -> syn::Result<(u32, Ident)> {
    let text = literal.value();
    let parts = text.split_once('/').and_then(|(calls, unit)| {
        let constructor = match unit.trim() {
            "s" => "per_second",
            "min" => "per_minute",
            "h" => "per_hour",
            _ => return None,
        };
        let calls = calls.trim().parse::<NonZeroU32>().ok()?.get();
        Some((calls, Ident::new(constructor, literal.span())))
    });
    parts.ok_or_else(|| {
        let problem = "is not a rate limit: write calls per s, min or h, like \"30/min\"";
        Error::new(literal.span(), format!("{text:?} {problem}"))
    })
}

/// A whole number of `ms`, `s` or `m`, more than zero.
fn duration(literal: &LitStr) -> syn::Result<Duration> {
    let text = literal.value();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_millis = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        _ => None,
    };
    let millis = number.parse::<u64>().ok().zip(unit_millis);
    match millis.and_then(|(number, unit)| number.checked_mul(unit)).filter(|millis| *millis > 0) {
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err(Error::new(
            literal.span(),
            format!(
                "{text:?} is not a time limit: write a whole number of `ms`, `s` or `m`, \
                 for example \"30s\""
            ),
        )),
    }
}

/// `(parameter = "context_key", optional? = "context_key", …)`.
fn injections(input: ParseStream<'_>) -> syn::Result<Vec<Inject>> {
    let list;
    parenthesized!(list in input);
    let one = |input: ParseStream<'_>| {
        let parameter = Ident::parse_any(input)?.unraw().to_string();
        let optional = input.parse::<Option<Token![?]>>()?.is_some();
        let context_key = text(input)?.value();
        Ok(Inject { parameter, context_key, required: !optional })
    };
    let list = list.parse_terminated(one, Token![,])?;
    Ok(list.into_iter().collect())
}

/// An example as compact JSON; refused unless it is an object.
fn example(literal: &LitStr) -> syn::Result<String> {
    let problem = match serde_json::from_str::<Value>(&literal.value()) {
        Ok(example @ Value::Object(_)) => return Ok(example.to_string()),
        Ok(_) => "it is not an object of arguments".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::new(literal.span(), format!("this example cannot be sent: {problem}")))
}

/// The error for an unknown setting.
fn unknown_setting(unknown: &str) -> String {
    let near = KNOWN
        .iter()
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
        .min()
        .filter(|(distance, known)| *distance * 3 <= known.len().max(unknown.len()));
    let near = near.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    format!("`#[tool]` has no setting `{unknown}`{near}\nknown settings: {}", KNOWN.join(", "))
}
