//! The output of commands, and the mistakes that they report.

mod approvals;
mod command_lines;
mod doctor;
mod export_notes;
mod finding;
mod left_out;
mod listings;
mod pauses;
mod settings;
mod settings_files;
mod showing;
