//! Arguments: checked, mended, converted, and what a refusal says.

mod checked;
mod constraints;
mod mending;
mod model_calls;
mod numbers;
mod preparation;
mod refusals;
