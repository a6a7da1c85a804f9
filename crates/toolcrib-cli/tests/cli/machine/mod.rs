//! What the machine enforces, and what a server leaves on it.

mod audit_places;
mod backups;
mod confined;
mod control_plane;
mod deployed;
mod operations;
mod own_process;
mod retention;
mod silent_helper;
mod state;
mod without_landlock;
