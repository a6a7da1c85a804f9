//! The pinned part of MCP servers, prompts and resources.

use serde_json::{Map, Value, json};
use toolcrib_tool::{Approval, Icon};

use super::digest_of;
use crate::declaration::{
    HttpUpstream, MessageContent, NamePattern, Needs, PromptDeclaration, ResourceContent,
    ResourceDeclaration, StdioUpstream, ToolOverride, UpstreamDeclaration, UpstreamPrompts,
    UpstreamResources, UpstreamTools, UpstreamTransport,
};

impl UpstreamDeclaration {
    /// The whole declaration of the server as one value: what
    /// [`Declaration::expanded`](crate::declaration::Declaration::expanded) is for a tool.
    pub fn expanded(&self) -> Value {
        // All fields are listed, so that adding a field requires a decision whether it is pinned.
        let Self {
            name: _,
            transport,
            tools,
            resources,
            prompts,
            trust_annotations,
            connect_timeout,
            timeout,
            concurrent,
            rate,
            approval,
            tags,
            category,
            needs,
            owner: _,
            origin: _,
        } = self;
        let mut expanded = Map::new();
        match transport {
            UpstreamTransport::Stdio(StdioUpstream {
                argv,
                files,
                env,
                pass_env,
                keep_home,
                cwd,
                sandbox,
            }) => {
                put(&mut expanded, "command", json!(argv));
                put(&mut expanded, "files", json!(files));
                put(&mut expanded, "env", json!(env));
                put(&mut expanded, "pass_env", json!(pass_env));
                put(&mut expanded, "keep_home", json!(keep_home));
                put(&mut expanded, "cwd", json!(cwd));
                put(&mut expanded, "sandbox", json!(sandbox));
            }
            UpstreamTransport::Http(HttpUpstream { url, bearer, headers, allow_private }) => {
                let networks: Vec<_> = allow_private.iter().map(ToString::to_string).collect();
                put(&mut expanded, "url", json!(url));
                put(&mut expanded, "bearer", json!(bearer));
                put(&mut expanded, "headers", json!(headers));
                put(&mut expanded, "allow_private", json!(networks));
            }
        }
        let UpstreamTools { prefix, include, exclude, overrides } = tools;
        let patterns = |list: &[NamePattern]| list.iter().map(|own| own.pattern.clone()).collect();
        put(&mut expanded, "include", patterns(include));
        put(&mut expanded, "exclude", patterns(exclude));
        put(&mut expanded, "prefix", json!(prefix));
        let overrides = overrides.iter().map(|(tool, own)| (tool.clone(), overridden(own)));
        if let Some(UpstreamResources { include, exclude }) = resources {
            let mut offered = Map::new();
            put(&mut offered, "include", patterns(include));
            put(&mut offered, "exclude", patterns(exclude));
            // Offering all of them says something, too.
            expanded.insert("resources".to_owned(), offered.into());
        }
        if let Some(UpstreamPrompts { include, exclude }) = prompts {
            let mut offered = Map::new();
            put(&mut offered, "include", patterns(include));
            put(&mut offered, "exclude", patterns(exclude));
            expanded.insert("prompts".to_owned(), offered.into());
        }
        put(&mut expanded, "override", Value::Object(overrides.collect()));
        put(&mut expanded, "trust_annotations", json!(trust_annotations));
        put(&mut expanded, "connect_timeout_seconds", json!(connect_timeout.as_secs_f64()));
        put(&mut expanded, "timeout_seconds", json!(timeout.map(|limit| limit.as_secs_f64())));
        put(&mut expanded, "concurrent", json!(concurrent));
        put(&mut expanded, "rate", json!(rate.map(|rate| rate.to_string())));
        if *approval != Approval::Never {
            put(&mut expanded, "approval", json!(approval.as_str()));
        }
        put(&mut expanded, "tags", json!(tags));
        put(&mut expanded, "category", json!(category));
        if *needs != Needs::default() {
            put(&mut expanded, "needs", json!(needs));
        }
        expanded.into()
    }

    /// [`digest_of`] what it [expands](Self::expanded) to.
    pub fn digest(&self) -> String {
        digest_of(&self.expanded())
    }
}

/// The content of an override, without its position.
fn overridden(own: &ToolOverride) -> Value {
    let ToolOverride { name, title, description, annotations, approval, origin: _ } = own;
    let mut expanded = Map::new();
    put(&mut expanded, "name", json!(name));
    put(&mut expanded, "title", json!(title));
    put(&mut expanded, "description", json!(description));
    put(&mut expanded, "annotations", json!(annotations));
    put(&mut expanded, "approval", json!(approval.map(Approval::as_str)));
    expanded.into()
}

impl PromptDeclaration {
    /// The whole declaration as one value. Files are pinned by path and type only, because their
    /// content is read when the prompt is requested.
    pub fn expanded(&self) -> Value {
        let Self { name: _, title, icons, description, arguments, messages, origin: _ } = self;
        let mut expanded = Map::new();
        put(&mut expanded, "title", json!(title));
        put(&mut expanded, "icons", icons.iter().map(Icon::to_value).collect());
        put(&mut expanded, "description", json!(description));
        let arguments = arguments.iter().map(|argument| {
            let mut told = Map::new();
            put(&mut told, "name", json!(argument.name));
            put(&mut told, "title", json!(argument.title));
            put(&mut told, "description", json!(argument.description));
            put(&mut told, "required", json!(argument.required));
            put(&mut told, "suggest", json!(argument.suggest));
            Value::Object(told)
        });
        put(&mut expanded, "arguments", arguments.collect());
        let messages = messages.iter().map(|message| {
            let role = if message.by_assistant { "assistant" } else { "user" };
            match &message.content {
                MessageContent::Text(text) => json!({"role": role, "text": text}),
                MessageContent::Resource(uri) => json!({"role": role, "resource": uri}),
                MessageContent::File { path, mime_type } => {
                    json!({"role": role, "file": path, "mime_type": mime_type})
                }
            }
        });
        put(&mut expanded, "messages", messages.collect());
        expanded.into()
    }

    /// [`digest_of`] what it [expands](Self::expanded) to.
    pub fn digest(&self) -> String {
        digest_of(&self.expanded())
    }
}

impl ResourceDeclaration {
    /// The whole declaration as one value. A file is pinned by its path only, because its content
    /// is read with the resource.
    pub fn expanded(&self) -> Value {
        let Self {
            uri: _,
            variables: _,
            name,
            title,
            icons,
            description,
            mime_type,
            content,
            suggest,
            origin: _,
        } = self;
        let mut expanded = Map::new();
        put(&mut expanded, "name", json!(name));
        put(&mut expanded, "title", json!(title));
        put(&mut expanded, "icons", icons.iter().map(Icon::to_value).collect());
        put(&mut expanded, "description", json!(description));
        put(&mut expanded, "mime_type", json!(mime_type));
        match content {
            ResourceContent::Text(text) => put(&mut expanded, "text", json!(text)),
            ResourceContent::File(path) => put(&mut expanded, "file", json!(path)),
        }
        put(&mut expanded, "suggest", json!(suggest));
        expanded.into()
    }

    /// [`digest_of`] what it [expands](Self::expanded) to.
    pub fn digest(&self) -> String {
        digest_of(&self.expanded())
    }
}

/// Adds a member, unless it has its default.
fn put(members: &mut Map<String, Value>, name: &str, value: Value) {
    let says_nothing = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if !says_nothing {
        members.insert(name.to_owned(), value);
    }
}
