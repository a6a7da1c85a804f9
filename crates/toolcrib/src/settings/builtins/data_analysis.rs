//! Settings of `data_analysis`.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_databases::AnalysisSettings;
use toolcrib_tool::units::{SizeLimit, TimeLimit};

use super::without_limit;
use crate::settings::Config;

/// Settings of the queries of `data_analysis`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DataAnalysis {
    /// The time limit of a call, reading the files included; `none` for no limit except that of every call.
    pub timeout: TimeLimit,
    /// The memory of a query. What does not fit is sorted and joined on disk, in the temporary folder.
    pub memory: SizeLimit,
    /// The most bytes of all files of a call together.
    pub max_input: SizeLimit,
}

impl Default for DataAnalysis {
    fn default() -> Self {
        let AnalysisSettings { timeout, memory, max_input, .. } = AnalysisSettings::default();
        Self {
            timeout: TimeLimit(Some(timeout)),
            memory: SizeLimit(memory),
            max_input: SizeLimit(max_input),
        }
    }
}

impl Config {
    /// The time limit that the config sets for the work of a built-in tool for data, which is shorter than that of its
    /// calls. `None` for other tools and without a limit.
    pub fn data_limit(&self, tool: &str) -> Option<Duration> {
        match tool {
            "data_analysis" => self.data_analysis.timeout.0,
            "db_query" | "describe_database" => self.db_query.timeout.0,
            _ => None,
        }
    }

    /// Adds the tools for data files and databases, with their settings.
    pub(super) fn with_databases(
        &self,
        builtins: toolcrib_builtins::Builtins,
    ) -> toolcrib_builtins::Builtins {
        let DataAnalysis { timeout, memory, max_input } = &self.data_analysis;
        let analysis = AnalysisSettings::default()
            .with_timeout(without_limit(*timeout))
            .with_memory(memory.0)
            .with_max_input(max_input.0);
        let databases = self.db_query.databases(&self.databases);
        let none = databases.databases.is_empty();
        let builtins = builtins
            .family(toolcrib_databases::CRATE)
            .family_service(Arc::new(analysis))
            .family_service(Arc::new(databases));
        if !none {
            return builtins;
        }
        ["db_query", "describe_database"]
            .into_iter()
            .fold(builtins, toolcrib_builtins::Builtins::without_family_tool)
    }
}
