//! Authentication and authorization: tokens, rights, limits, Host and Origin.

pub(crate) mod allowed_hosts;
pub(crate) mod bearer;
pub(crate) mod client;
pub(crate) mod client_limits;
pub(crate) mod clients;
pub(crate) mod entitlement;
pub(crate) mod host_check;
pub(crate) mod revocation;
pub(crate) mod right;
pub(crate) mod token;
