//! Reads, writes, edits and finds files of a project. Every path goes through a
//! [`Workspace`](toolcrib_sandbox::Workspace), so nothing outside is ever touched.

mod call;
mod delete;
mod edit;
mod encoding;
mod exists;
mod ignored;
mod lines;
mod list;
mod matches;
mod mkdir;
mod preview;
mod profile;
mod read;
mod read_budget;
mod refusal;
mod search;
mod write;

pub use profile::NameProfile;
pub use refusal::path_error;

/// Registers one tool under its names in both profiles.
macro_rules! in_both_profiles {
    (
        $(#[doc = $doc:tt])*
        #[tool($($settings:tt)*)]
        $($name:ident)/+ ($args:ident) => $work:ident
    ) => {
        $crate::files::in_both_profiles! { @each [$(#[doc = $doc])*] [$($settings)*] [$args $work] $($name)+ }
    };
    (@each $docs:tt $settings:tt $rest:tt $($name:ident)+) => {
        $($crate::files::in_both_profiles! { @one $docs $settings $rest $name })+
    };
    (@one [$(#[doc = $doc:tt])*] [$($settings:tt)*] [$args:ident $work:ident] $name:ident) => {
        $(#[doc = $doc])*
        #[toolcrib_macros::tool($($settings)*)]
        fn $name(
            args: $args,
            cx: &toolcrib_tool::CallContext,
            #[service] projects: std::sync::Arc<$crate::Projects>,
            #[context("project_id")] project_id: Option<String>,
        ) -> Result<toolcrib_tool::ToolOutput, toolcrib_tool::ToolError> {
            let workspace = projects.workspace(project_id.as_deref())?;
            $work(&args, &$crate::files::call::FileCall { workspace, cx })
        }
    };
}
pub(crate) use in_both_profiles;
