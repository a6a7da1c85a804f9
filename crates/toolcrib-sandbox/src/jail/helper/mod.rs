//! The helper process: it builds the jail, becomes the program, watches the tree.

pub(crate) mod executable;
pub(crate) mod plan;
pub(crate) mod privileges;
pub(crate) mod report;
pub(crate) mod supervisor;
pub(crate) mod target;
pub(crate) mod tree;
