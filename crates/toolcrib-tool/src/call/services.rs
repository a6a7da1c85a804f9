//! Services that a host lends to its tools: databases, clients, settings, found by type or by name.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

type Service = Arc<dyn Any + Send + Sync>;

/// Services of a host. Clones are cheap. A missing service is `None`, never a panic.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_tool::Services;
///
/// struct Database(&'static str);
///
/// let services = Services::new()
///     .with(Arc::new(Database("orders")))
///     .with_named("archive", Arc::new(Database("archive")));
/// assert_eq!(services.get::<Database>().map(|db| db.0), Some("orders"));
/// assert_eq!(services.named::<Database>("archive").map(|db| db.0), Some("archive"));
/// assert!(services.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct Services(Arc<Inner>);

#[derive(Clone, Default)]
struct Inner {
    by_type: HashMap<TypeId, Service>,
    by_name: HashMap<String, Service>,
}

impl Services {
    /// No services.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces the service of a type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, service: Arc<T>) -> Self {
        Arc::make_mut(&mut self.0).by_type.insert(TypeId::of::<T>(), service);
        self
    }

    /// Adds or replaces a named service: for several services of one type, or for a trait object in an `Arc<Arc<dyn
    /// Trait>>`.
    #[must_use]
    pub fn with_named<T: Any + Send + Sync>(
        mut self,
        name: impl Into<String>,
        service: Arc<T>,
    ) -> Self {
        Arc::make_mut(&mut self.0).by_name.insert(name.into(), service);
        self
    }

    /// The service of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.by_type.get(&TypeId::of::<T>())?).downcast().ok()
    }

    /// The service of this name, if it has this type.
    pub fn named<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        Arc::clone(self.0.by_name.get(name)?).downcast().ok()
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("types", &self.0.by_type.len())
            .field("names", &self.0.by_name.keys())
            .finish()
    }
}
