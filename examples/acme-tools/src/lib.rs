//! A crate of tools: whoever links it in has them.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib::{Json, ToolError, tool};

/// What `convert_temperature` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Conversion {
    /// The temperature to convert.
    degrees: f64,
    /// The unit it is in.
    from: Unit,
}

/// A unit of temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// °C
    Celsius,
    /// °F
    Fahrenheit,
}

/// A converted temperature.
#[derive(Debug, PartialEq, serde::Serialize, JsonSchema)]
pub struct Temperature {
    degrees: f64,
    unit: Unit,
}

/// Convert a temperature between Celsius and Fahrenheit.
#[tool(category = "data", read_only, idempotent, open_world = false, blocking = false)]
pub fn convert_temperature(args: Conversion) -> Result<Json<Temperature>, ToolError> {
    let (degrees, unit, kelvin) = match args.from {
        Unit::Celsius => (args.degrees * 1.8 + 32.0, Unit::Fahrenheit, args.degrees + 273.15),
        Unit::Fahrenheit => {
            let celsius = (args.degrees - 32.0) / 1.8;
            (celsius, Unit::Celsius, celsius + 273.15)
        }
    };
    if kelvin < 0.0 {
        return Err(ToolError::invalid_args("that is colder than absolute zero")
            .with_hint("Check the number and the unit it is in."));
    }
    Ok(Json(Temperature { degrees, unit }))
}
