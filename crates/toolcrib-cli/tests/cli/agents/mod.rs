//! Agents on the command line, with a scripted model behind HTTP.

mod approved;
mod attachments;
mod figures;
mod following;
mod following_on;
mod harness;
mod listing;
mod owners;
mod responses;
mod resuming;
mod running;
mod served;
mod served_sub_agents;
mod settings;
mod sockets;
mod starting;
mod steering;
mod sub_agents;
