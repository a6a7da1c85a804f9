//! Tests of the control plane, and the folder that they work in.

mod changes;
mod loaded_code;
mod missing_files;
mod places;
mod running_programs;

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_manifest::decode;
use toolcrib_runners::RunnerHost;

use crate::manifests::Manifests;
use crate::settings::Config;
use crate::{ToolCall, Toolcrib, ToolcribBuilder};

/// A folder with a workspace and a manifest directory in it.
pub(super) struct TestWorkspace {
    _dir: tempfile::TempDir,
    pub(super) top: PathBuf,
}

impl TestWorkspace {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for folder in ["ws", "tools.d", "ws/scripts"] {
            fs::create_dir(top.join(folder)).unwrap();
        }
        Self { _dir: dir, top }
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.top.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A manifest with one tool, which `run` describes.
    pub(super) fn tool(&self, name: &str, run: &str) {
        let text = format!(
            "toolcrib: 1\ntools:\n  - name: {name}\n    description: Run something.\n    run: {run}\n"
        );
        self.write(&format!("tools.d/{name}.yaml"), &text);
    }

    /// Settings with the folder `ws` as their workspace.
    pub(super) fn settings(&self, text: &str) -> Config {
        let config: Config = decode("config.yml", text).unwrap();
        let mut config = config.relative_to(&self.top);
        config.workspace.root = self.top.join("ws");
        config
    }

    pub(super) fn builder(&self, config: &str) -> ToolcribBuilder {
        let mut config = self.settings(config);
        config.own_files.push(self.top.join("config.yml"));
        let found = Manifests::load(&config.manifests.dirs, RunnerHost::new(self.top.join("ws")));
        Toolcrib::builder().settings(&config).native_tools().manifests(&found)
    }

    pub(super) fn crib(&self) -> Toolcrib {
        self.builder("{}").build().unwrap()
    }

    pub(super) fn read_only(&self, crib: &Toolcrib, name: &str) -> bool {
        crib.control_plane().places().read_only.contains(&self.top.join(name))
    }
}

pub(super) fn hidden(crib: &Toolcrib, path: &Path) -> bool {
    crib.control_plane().places().hidden.contains(&path.to_owned())
}

pub(super) fn unavailable(crib: &Toolcrib, tool: &str) -> Option<String> {
    let snapshot = crib.executor().registry().snapshot();
    snapshot.get(tool)?.unavailable_reason().map(str::to_owned)
}

pub(super) async fn call(crib: &Toolcrib, tool: &str, arguments: &str) -> String {
    crib.turn().call(ToolCall::new("1", tool, arguments)).await.text().into_owned()
}
