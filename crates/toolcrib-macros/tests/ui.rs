//! The compiler errors for incorrect uses of `#[tool]`.

#[test]
fn mistakes_are_explained_at_their_position() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
