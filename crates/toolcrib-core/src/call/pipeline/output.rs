//! Converts a tool's return value into a call's output.

use toolcrib_tool::{ErrorKind, ToolDefinition, ToolError, ToolOutcome, ToolOutput};

use crate::arguments::preparation::listed;
use crate::arguments::validators::SchemaCache;
use crate::call::host::ExecutorHost;
use crate::output::budget::{data_bytes as bytes_of, oversized};

/// The output; or an error if the call waits, which the host records.
pub(super) fn finished(
    name: &str,
    outcome: ToolOutcome,
    host: &ExecutorHost,
) -> Result<ToolOutput, ToolError> {
    match outcome {
        ToolOutcome::Done(output) if !output.is_empty() => Ok(output),
        ToolOutcome::Done(_) => host.take_result().ok_or_else(|| {
            ToolError::execution("the tool ended with no output")
                .with_hint("Nothing is known of what it did. Try another tool.")
        }),
        ToolOutcome::NeedsInput(request) => Err(host.wait_for((*request).into())),
        ToolOutcome::Pending(ticket) => Err(host.wait_for(ticket.into())),
        _ => Err(ToolError::internal(format!("{name} ended in a way this version does not know"))),
    }
}

/// Checks `data` against its size limit and the output schema.
pub(crate) fn check_data(
    definition: &ToolDefinition,
    schemas: &SchemaCache,
    output: ToolOutput,
    data_bytes: usize,
) -> Result<ToolOutput, ToolError> {
    let size = output.exact_data().map_or(0, bytes_of);
    if size > data_bytes {
        return Err(oversized(output, size, data_bytes));
    }
    let Some(validator) = schemas.output(definition)? else { return Ok(output) };
    let Some(data) = output.exact_data() else {
        let message = "the tool declares an output schema and returned no data";
        return Err(ToolError::new(ErrorKind::InvalidOutput, message).with_partial(output));
    };
    let violations = validator.violations_of(data);
    if violations.is_empty() {
        return Ok(output);
    }
    let message = "the tool's data does not fit the output schema it declares";
    Err(listed(ToolError::new(ErrorKind::InvalidOutput, message), &violations))
}
