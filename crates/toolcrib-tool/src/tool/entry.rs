//! A tool as a registry holds it: its definition, its body and its source.

use std::fmt;
use std::sync::Arc;

use crate::{Constraint, SharedTool, Tool, ToolDefinition, ToolFactory};

/// Where a tool came from, in the order of precedence for names: the first wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// Registered by the host's own code.
    Host,
    /// Linked in and found through `inventory`.
    Native,
    /// Declared in a manifest file.
    Manifest,
    /// Offered by another MCP server.
    Upstream,
    /// The system's own tools, which any permitted entry above may replace.
    Fallback,
}

impl Layer {
    /// The name in listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Native => "native",
            Self::Manifest => "manifest",
            Self::Upstream => "upstream",
            Self::Fallback => "fallback",
        }
    }
}

/// The place in a file where a tool is declared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The file, as shown to people.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1; 0 if unknown.
    pub column: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// Who declares a tool. An entry's identity is the pair (source, name), never a joined string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The layer, which decides the precedence for a name.
    pub layer: Layer,
    /// The declaring unit: a crate, a file, an upstream's name.
    pub unit: String,
    /// The exact position, if known.
    pub origin: Option<Origin>,
}

impl Source {
    /// A source without a position in a file.
    pub fn new(layer: Layer, unit: impl Into<String>) -> Self {
        Self { layer, unit: unit.into(), origin: None }
    }

    /// Adds the position.
    #[must_use]
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) if origin.file == self.unit => {
                write!(f, "{} {origin}", self.layer.as_str())
            }
            Some(origin) => write!(f, "{} {} ({origin})", self.layer.as_str(), self.unit),
            None => write!(f, "{} {}", self.layer.as_str(), self.unit),
        }
    }
}

/// What runs when the tool is called.
#[derive(Clone)]
#[non_exhaustive]
pub enum Body {
    /// One instance for all calls.
    Shared(SharedTool),
    /// An instance per call.
    PerUse(Arc<dyn ToolFactory>),
    /// No body: the client runs the tool.
    Client,
}

impl Body {
    /// One instance for all calls.
    pub fn shared(tool: Arc<dyn Tool>) -> Self {
        Self::Shared(SharedTool::new(tool))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(_) => f.write_str("Shared"),
            Self::PerUse(_) => f.write_str("PerUse"),
            Self::Client => f.write_str("Client"),
        }
    }
}

/// Whether a tool can run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Available,
    /// It cannot run; the reason is for people and for the answer to a call.
    Unavailable {
        /// One clause, for example ``needs the program `ss`, which is not on PATH``.
        reason: String,
    },
    /// It could run but must not, because its declaration was not accepted. Such an entry gets its name only if no
    /// callable entry has it.
    Blocked {
        /// One clause, for example `it has changed since it was accepted`.
        reason: String,
    },
}

/// A tool with its body and its source, as sources register it.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// The definition.
    pub definition: Arc<ToolDefinition>,
    /// The constraints on every call, beyond the schema.
    pub constraint: Option<Arc<dyn Constraint>>,
    /// Whether it can run here.
    pub availability: Availability,
    /// The body.
    pub body: Body,
    /// The source.
    pub source: Source,
    /// Represents everything that its source declares, including what the definition does not contain, such as the
    /// command it runs; `None` for compiled tools. Equal digests mean equal declarations.
    pub digest: Option<Arc<str>>,
    /// The source's unit under the name that it has in every process, such as the path of a file without links and
    /// without a current folder; `None` if that is [`Source::unit`].
    pub unit_everywhere: Option<Arc<str>>,
    /// A remark for the operator about a callable tool; one clause.
    pub remark: Option<Arc<str>>,
    /// Why its author lets a value of a call choose a program, be run, or name an option of a program. People see it
    /// wherever the tool is listed.
    pub unsafe_argv: Option<Arc<str>>,
    /// Whether only turns have it whose toolset names it for that (core's `Toolset::opt_in`). All others do not know it.
    pub opt_in: bool,
}

impl ToolEntry {
    /// An available tool with one shared instance. Clones of the entry have the same instance; see
    /// [`SharedTool`].
    pub fn new(
        definition: impl Into<Arc<ToolDefinition>>,
        body: Arc<dyn Tool>,
        source: Source,
    ) -> Self {
        Self::with_body(definition.into(), Body::shared(body), source)
    }

    /// An available tool with an instance per call.
    pub fn per_use(
        definition: impl Into<Arc<ToolDefinition>>,
        factory: Arc<dyn ToolFactory>,
        source: Source,
    ) -> Self {
        Self::with_body(definition.into(), Body::PerUse(factory), source)
    }

    /// A tool that the client runs. Its definition is marked as [`client`](ToolDefinition::client), whatever was set
    /// before.
    pub fn client(definition: ToolDefinition, source: Source) -> Self {
        Self::with_body(Arc::new(definition.for_client()), Body::Client, source)
    }

    fn with_body(definition: Arc<ToolDefinition>, body: Body, source: Source) -> Self {
        let availability = Availability::Available;
        Self {
            definition,
            body,
            source,
            availability,
            digest: None,
            unit_everywhere: None,
            constraint: None,
            remark: None,
            unsafe_argv: None,
            opt_in: false,
        }
    }

    /// Sets that only turns have it whose toolset [names it for that](Self::opt_in).
    #[must_use]
    pub fn for_opt_in(mut self) -> Self {
        self.opt_in = true;
        self
    }

    /// Sets the [`digest`](Self::digest).
    #[must_use]
    pub fn with_digest(mut self, digest: impl Into<Arc<str>>) -> Self {
        self.digest = Some(digest.into());
        self
    }

    /// Sets [`unit_everywhere`](Self::unit_everywhere).
    #[must_use]
    pub fn with_unit_everywhere(mut self, unit: impl Into<Arc<str>>) -> Self {
        self.unit_everywhere = Some(unit.into());
        self
    }

    /// Sets the [`constraint`](Self::constraint).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toolcrib_tool::{
    ///     Arguments, Constraint, ContextValues, ErrorKind, Layer, Source, ToolDefinition, ToolEntry,
    ///     ToolError,
    /// };
    ///
    /// #[derive(Debug)]
    /// struct OfficeHours;
    /// impl Constraint for OfficeHours {
    ///     fn check(&self, _: &Arguments, values: &ContextValues) -> Result<(), ToolError> {
    ///         match values.get("open") {
    ///             Some(open) if open == true => Ok(()),
    ///             _ => Err(ToolError::new(ErrorKind::Constraint, "The office is closed.")),
    ///         }
    ///     }
    /// }
    ///
    /// let definition = ToolDefinition::builder("knock").description("Knock.").build()?;
    /// let source = Source::new(Layer::Host, "office");
    /// let entry = ToolEntry::client(definition, source).with_constraint(Arc::new(OfficeHours));
    /// assert!(entry.constraint.is_some());
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn with_constraint(mut self, constraint: Arc<dyn Constraint>) -> Self {
        self.constraint = Some(constraint);
        self
    }

    /// Sets the [`remark`](Self::remark).
    #[must_use]
    pub fn with_remark(mut self, remark: impl Into<Arc<str>>) -> Self {
        self.remark = Some(remark.into());
        self
    }

    /// Sets the reason of [`unsafe_argv`](Self::unsafe_argv).
    #[must_use]
    pub fn with_unsafe_argv(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.unsafe_argv = Some(reason.into());
        self
    }

    /// Marks the tool as one that must not be called here, whatever else keeps it from running.
    #[must_use]
    pub fn blocked(mut self, reason: impl Into<String>) -> Self {
        self.availability = Availability::Blocked { reason: reason.into() };
        self
    }

    /// Marks the tool as unable to run here.
    #[must_use]
    pub fn unavailable(mut self, reason: impl Into<String>) -> Self {
        self.availability = Availability::Unavailable { reason: reason.into() };
        self
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        self.definition.name()
    }

    /// Whether it may not be called, although it could.
    pub fn is_blocked(&self) -> bool {
        matches!(self.availability, Availability::Blocked { .. })
    }

    /// Why it cannot or must not run here, if so.
    pub fn unavailable_reason(&self) -> Option<&str> {
        match &self.availability {
            Availability::Available => None,
            Availability::Unavailable { reason } | Availability::Blocked { reason } => Some(reason),
        }
    }
}
