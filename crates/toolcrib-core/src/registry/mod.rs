//! The registry: who owns which name, in immutable snapshots, while units come, change and go.

mod builder;
mod change;
mod changes;
mod conflict;
mod duplicates;
mod error;
mod evolve;
mod live;
mod owners;
mod rules;
mod scratch;
mod selection;
mod slot;
mod snapshot;
mod unit;
mod upstream_name;

pub use builder::{Registration, RegistryBuilder};
pub use change::Change;
pub use changes::RegistryChanges;
pub use conflict::{Conflict, Divergence, Reservation};
pub use duplicates::OnDuplicate;
pub use error::RegistryError;
pub use evolve::Applied;
pub use live::Registry;
pub use rules::OVERRIDABLE;
pub use scratch::Scratch;
pub(crate) use selection::Selection;
pub(crate) use slot::{Compiled, ToolSlot};
pub use snapshot::RegistrySnapshot;
pub use unit::SourceUnit;
pub use upstream_name::exposed_name;
