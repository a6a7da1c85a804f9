//! Files that a request contains for its tools, in the three formats that hosts use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A file, or an indexed store of files, by its id at the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ToolFile {
    /// One file.
    #[serde(rename = "file_id")]
    File(String),
    /// An indexed store of files.
    #[serde(rename = "vector_store_id")]
    VectorStore(String),
}

impl ToolFile {
    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::File(id) | Self::VectorStore(id) => id,
        }
    }
}

/// Files by type of tool: a tool sees only the list for its own type.
///
/// ```
/// use toolcrib_tool::{ToolFile, ToolFiles, ToolResources};
///
/// let resources: ToolResources = serde_json::from_str(
///     r#"{"code_interpreter": {"file_ids": ["f1", "f2"]}, "file_search": {"vector_store_ids": ["v1"]}}"#,
/// )?;
/// let files = ToolFiles::from(&resources);
/// assert_eq!(files.of("file_search"), [ToolFile::VectorStore("v1".into())]);
/// assert!(files.of("shell").is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolFiles(BTreeMap<String, Vec<ToolFile>>);

impl ToolFiles {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file for a type of tool, unless it is already there.
    #[must_use]
    pub fn with(mut self, tool_type: impl Into<String>, file: ToolFile) -> Self {
        let files = self.0.entry(tool_type.into()).or_default();
        if !files.contains(&file) {
            files.push(file);
        }
        self
    }

    /// The files for a type of tool, in the order in which they were added.
    pub fn of(&self, tool_type: &str) -> &[ToolFile] {
        self.0.get(tool_type).map(Vec::as_slice).unwrap_or_default()
    }

    /// All lists, by type of tool.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[ToolFile])> {
        self.0.iter().map(|(tool_type, files)| (tool_type.as_str(), files.as_slice()))
    }
}

/// The shape of `tool_resources`: `{"code_interpreter": {"file_ids": […]}, …}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolResources(pub BTreeMap<String, ToolResource>);

/// The files for one type of tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResource {
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_ids: Vec<String>,
    /// Ids of indexed stores of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vector_store_ids: Vec<String>,
}

/// The shape of `files` (a message's attachments): each file with the tools that may use it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attachments(pub Vec<Attachment>);

/// One file and the tools that may use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The file.
    #[serde(flatten)]
    pub file: ToolFile,
    /// The tools.
    pub tools: Vec<AttachedTool>,
}

/// A type of tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedTool {
    /// Its name, for example `code_interpreter`.
    #[serde(rename = "type")]
    pub tool_type: String,
}

impl From<&ToolResources> for ToolFiles {
    fn from(resources: &ToolResources) -> Self {
        let lists = resources.0.iter().map(|(tool_type, resource)| {
            let files = resource.file_ids.iter().cloned().map(ToolFile::File);
            let stores = resource.vector_store_ids.iter().cloned().map(ToolFile::VectorStore);
            (tool_type.clone(), files.chain(stores).collect())
        });
        Self(lists.collect())
    }
}

impl From<&Attachments> for ToolResources {
    fn from(attachments: &Attachments) -> Self {
        let mut resources = Self::default();
        for Attachment { file, tools } in &attachments.0 {
            for tool in tools {
                let resource = resources.0.entry(tool.tool_type.clone()).or_default();
                let (ids, id) = match file {
                    ToolFile::File(id) => (&mut resource.file_ids, id),
                    ToolFile::VectorStore(id) => (&mut resource.vector_store_ids, id),
                };
                if !ids.contains(id) {
                    ids.push(id.clone());
                }
            }
        }
        resources
    }
}

impl From<&ToolResources> for Attachments {
    fn from(resources: &ToolResources) -> Self {
        let mut attachments: Vec<Attachment> = Vec::new();
        for (tool_type, files) in ToolFiles::from(resources).0 {
            for file in files {
                let tool = AttachedTool { tool_type: tool_type.clone() };
                match attachments.iter_mut().find(|known| known.file == file) {
                    Some(known) if known.tools.contains(&tool) => {}
                    Some(known) => known.tools.push(tool),
                    None => attachments.push(Attachment { file, tools: vec![tool] }),
                }
            }
        }
        Self(attachments)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn files_and_tools_survive_a_round_trip() {
        let resources = json!({
            "code_interpreter": {"file_ids": ["f2", "f1"]},
            "file_search": {"file_ids": ["f1"], "vector_store_ids": ["v1"]},
        });
        let resources: ToolResources = from_value(resources).unwrap();
        let attachments = Attachments::from(&resources);
        let shown = to_value(&attachments).unwrap();
        assert_eq!(
            shown,
            json!([
                {"file_id": "f2", "tools": [{"type": "code_interpreter"}]},
                {"file_id": "f1", "tools": [{"type": "code_interpreter"}, {"type": "file_search"}]},
                {"vector_store_id": "v1", "tools": [{"type": "file_search"}]},
            ])
        );
        let read: Attachments = from_value(shown).unwrap();
        assert_eq!(ToolResources::from(&read), resources);
    }

    #[test]
    fn a_file_attached_twice_is_one_file() {
        let twice: Attachments = from_value(json!([
            {"file_id": "f1", "tools": [{"type": "shell"}]},
            {"file_id": "f1", "tools": [{"type": "shell"}]},
        ]))
        .unwrap();
        let files = ToolFiles::from(&ToolResources::from(&twice));
        assert_eq!(files.of("shell"), [ToolFile::File("f1".into())]);
        assert_eq!(files, ToolFiles::new().with("shell", ToolFile::File("f1".into())));
    }
}
