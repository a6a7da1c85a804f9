//! `calculator`: correct answers, honest rounding, and hostile expressions.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_tool::{CallContext, ErrorKind};

use crate::harness::{call, call_in, context, data, fails, text, within};

fn expression(text: &str) -> Value {
    json!({"expression": text})
}

#[test]
fn answers_are_right_and_exact_where_they_can_be() {
    let table = [
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4^2", "80"),
        ("0.1 + 0.2", "0.3"),
        ("10 / 4", "2.5"),
        ("(1/3) * 3", "1"),
        ("7 mod 3", "1"),
        ("-3 + 1", "-2"),
        ("2^64", "18446744073709551616"),
        ("2**10", "1024"),
        ("20!", "2432902008176640000"),
        ("10 choose 3", "120"),
        ("20% of 50", "10"),
        ("sin(30 deg)", "0.5"),
        ("abs(-3)", "3"),
        ("floor(17 / 5)", "3"),
        ("1 << 10", "1024"),
        ("(1 << 4 << 1) + 1", "33"),
        ("5 × 3 − 1", "14"),
        ("1,000 + 1", "1001"),
        ("100 C to F", "212 °F"),
        ("1 GiB to MB", "1073.741824 MB"),
        ("5 feet + 3 inches to cm", "160.02 cm"),
        ("3 hours 20 minutes to seconds", "12000 seconds"),
        ("12345678901234567890 * 98765432109876543210", "1219326311370217952237463801111263526900"),
        ("3 == 3", "true"),
    ];
    for (asked, expected) in table {
        assert_eq!(text("calculator", &expression(asked)), expected, "{asked}");
    }
}

#[test]
fn rounded_answers_say_so() {
    assert_eq!(text("calculator", &expression("1/3")), "approx. 0.3333333333");
    assert_eq!(text("calculator", &expression("sqrt(2)")), "approx. 1.4142135624");
    assert_eq!(
        data("calculator", &expression("5 km to miles")),
        json!({"result": "3.1068559612 miles", "approximate": true})
    );
    let exact = data("calculator", &expression("1/4"));
    assert_eq!(exact, json!({"result": "0.25", "approximate": false}));
}

#[test]
fn mistakes_are_the_models_and_impossible_results_are_not() {
    for asked in ["", "2 +", "(1 + 2", "1 + 2)", "(", "foo + 1", "3 km + 2 kg", "17 // 5", "x = 5"]
    {
        fails("calculator", &expression(asked), ErrorKind::InvalidArgs, "");
    }
    fails("calculator", &expression("1/0"), ErrorKind::Execution, "division by zero");
    fails("calculator", &expression("10 mod 0"), ErrorKind::Execution, "modulo by zero");
    fails("calculator", &expression("sqrt(2) to 40 dp"), ErrorKind::InvalidArgs, "15 digits");
    fails("calculator", &expression("1 + 2)"), ErrorKind::InvalidArgs, "character 6");
}

#[test]
fn bombs_are_refused_quickly() {
    let nested = format!("{}1{}", "(".repeat(400), ")".repeat(400));
    let negative = format!("{}1", "-".repeat(900));
    let tower = format!("{}2", "2^".repeat(400));
    let bombs = [
        "9^9^9^9",
        "2^(10^9)",
        "2^-1000000000",
        "0.1^1000000000",
        "1000000!",
        "((1e300)!)!",
        "1e1000000000",
        "1e-1000000000",
        "2^0.00000001",
        "exp(1e10)",
        "fibonacci 1000000000",
        "1000000000 permute 500000000",
        "1/3 to 1000000000 dp",
        "1 << 99999999999",
        "1 << (10^12)",
        "1 << 99e9",
        "1 << 9 << 99999999",
        "1 << 9 + 9^99",
        "1 << 9 to hex",
        "d1000000",
        "100d100 + 1",
        "@2020-01-01 + 10000000000 days",
        "(x: x x)(x: x x)",
        "(\\x.x x)(\\x.x x)",
        "\"a\" * 1000000000",
        &nested,
        &tower,
        &"9".repeat(1_001),
    ];
    for bomb in bombs {
        let outcome =
            within(Duration::from_secs(2), bomb, || call("calculator", &expression(bomb)));
        let error = outcome.expect_err(bomb);
        assert!(!error.hints().is_empty() || error.message().contains("too large"), "{error:?}");
    }
    // Deep, but harmless.
    assert_eq!(text("calculator", &expression(&negative)), "1");
}

#[test]
fn a_calculation_ends_at_the_calls_own_deadline() {
    let definition = context("calculator").definition().clone();
    let deadline = Instant::now() + Duration::from_millis(50);
    let cx = CallContext::builder("call_1", definition).deadline(deadline).build();
    let outcome =
        within(Duration::from_millis(400), "the deadline", || call_in(&cx, &expression("9^9^9^9")));
    assert_eq!(outcome.expect_err("it is too long").kind(), ErrorKind::Execution);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_input_makes_it_panic_or_hang(asked in r"[-+*/^()!%.0-9a-z <>=,:@]{0,24}|\PC{0,24}") {
        let _ = within(Duration::from_secs(3), &asked, || call("calculator", &expression(&asked)));
    }

    #[test]
    fn sums_and_products_of_integers_are_exact(a in any::<i32>(), b in any::<i32>()) {
        let sum = i64::from(a) + i64::from(b);
        let product = i64::from(a) * i64::from(b);
        prop_assert_eq!(text("calculator", &expression(&format!("{a} + ({b})"))), sum.to_string());
        let asked = format!("({a}) * ({b})");
        prop_assert_eq!(text("calculator", &expression(&asked)), product.to_string());
    }
}
