//! Who may connect: tokens, clients, rights, and their revocation.

mod checks;
mod clients;
mod mcp_rights;
mod revocation;
