//! Commands about manifests: `check`, `new`, `enable`, `disable`, `test`, `lock`, `accept`, `trust`, `schema`.

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod enable;
pub(crate) mod lock;
pub(crate) mod new;
pub(crate) mod schema;
pub(crate) mod test;
pub(crate) mod trust;

use std::path::{Path, PathBuf};

use anyhow::bail;
use toolcrib::settings::Config;

/// Fails if one of these paths does not exist and is the name of a tool that the config's manifests declare. `repair`
/// makes the command for that tool from its name and its file.
fn refuse_tools(
    paths: &[PathBuf],
    config: &Config,
    repair: impl Fn(&str, &Path) -> String,
) -> anyhow::Result<()> {
    let missing: Vec<&str> =
        paths.iter().filter(|path| !path.exists()).filter_map(|path| path.to_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for file in toolcrib::manifest::directory::load_dirs(&config.manifests.dirs).files {
        let mut tools = file.loaded.declarations.iter().map(|tool| tool.definition.name());
        if let Some(name) = tools.find(|name| missing.contains(name)) {
            bail!(
                "`{name}` is a tool of {}, and this command takes files: run `{}`",
                file.path.display(),
                repair(name, &file.path)
            );
        }
    }
    Ok(())
}
