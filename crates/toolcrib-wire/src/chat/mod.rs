//! Serving chat completions.
