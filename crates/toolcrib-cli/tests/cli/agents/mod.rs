//! Agents on the command line, with a scripted model behind HTTP.

mod approved;
mod attachments;
mod harness;
mod owners;
mod resuming;
mod running;
mod served;
mod settings;
mod steering;
mod sub_agents;
