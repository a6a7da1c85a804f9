//! Arguments: validation, correction, conversion, and the messages of refusals.

mod checked;
mod constraints;
mod mending;
mod model_calls;
mod numbers;
mod preparation;
mod refusals;
