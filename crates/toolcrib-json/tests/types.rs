//! Types read from a tape: the same value as `serde_json` makes of the text, or both fail.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, Visitor};
use serde_json::Value;
use toolcrib_json::parse;

#[derive(Debug, PartialEq, Deserialize)]
struct Plain {
    a: i32,
    b: Option<String>,
    #[serde(default)]
    c: Vec<u8>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: Option<Value>,
    #[serde(rename = "b")]
    second: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Borrowing<'a> {
    #[serde(borrow)]
    a: Cow<'a, str>,
    b: Option<&'a str>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Flat {
    a: Option<f64>,
    #[serde(flatten)]
    inner: Inner,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Inner {
    b: Option<u64>,
    c: Option<Unit>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, Deserialize)]
struct Newtype(i8);

#[derive(Debug, PartialEq, Deserialize)]
struct Pair(u16, Option<bool>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum Outside {
    Unit,
    New(u8),
    Tuple(i64, String),
    Struct { a: i32, b: Option<u8> },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind")]
enum Inside {
    Unit,
    New(Inner),
    Struct { a: Option<i64>, b: Option<f64> },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", content = "a")]
enum Beside {
    Unit,
    New(Newtype),
    Tuple(u8, u8),
    Struct { b: Option<String> },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Flag(bool),
    Small(u8),
    Whole(i64),
    Real(f64),
    Text(String),
    List(Vec<Untagged>),
    Plain(Plain),
    Any(BTreeMap<String, Untagged>),
    Nothing(()),
}

/// Bytes, as a type asks for them that means bytes.
#[derive(Debug, PartialEq)]
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(bytes))
            }
        }

        deserializer.deserialize_byte_buf(Reader)
    }
}

/// Takes one item and leaves the others.
#[derive(Debug, PartialEq)]
struct FirstOnly(Option<Value>);

impl<'de> Deserialize<'de> for FirstOnly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = FirstOnly;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an item or a member")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<FirstOnly, A::Error> {
                Ok(FirstOnly(seq.next_element()?))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<FirstOnly, A::Error> {
                Ok(FirstOnly(map.next_entry::<IgnoredAny, _>()?.map(|(_, value)| value)))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// Whether the text was read; panics where we and `serde_json` differ.
fn agrees<'a, T: Deserialize<'a> + PartialEq + fmt::Debug>(
    tape: &'a toolcrib_json::Tape<'a>,
) -> bool {
    let text = tape.text();
    let name = std::any::type_name::<T>();
    match (T::deserialize(tape.root()), serde_json::from_str::<T>(text)) {
        (Ok(ours), Ok(theirs)) => {
            // The text of both, so that zeros differ in their sign and nothing differs from itself.
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{name} of {text}");
            true
        }
        (Err(error), Err(_)) => {
            assert!(!error.message().is_empty());
            false
        }
        (Ok(ours), Err(theirs)) => panic!("{name} of {text}: {ours:?}, serde_json says {theirs}"),
        (Err(ours), Ok(theirs)) => panic!("{name} of {text}: {ours}, serde_json reads {theirs:?}"),
    }
}

/// Which of the types read the text, in the order of [`TYPES`].
macro_rules! types {
    ($($type:ty,)*) => {
        const TYPES: &[&str] = &[$(stringify!($type),)*];

        fn readers(text: &str) -> Vec<bool> {
            let tape = parse(text).expect("a text we accept");
            vec![$(agrees::<$type>(&tape),)*]
        }
    };
}

types! {
    bool, i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, f64, char, String, &str, (),
    Value, Option<i32>, Option<Option<()>>, Box<str>, Cow<'_, str>, &[u8],
    Vec<u8>, Vec<Value>, [u8; 2], (i32, String), (Value,),
    Plain, Strict, Borrowing<'_>, Flat, Inner, Unit, Newtype, Pair,
    Outside, Inside, Beside, Untagged, Bytes, FirstOnly, Vec<Outside>, Vec<Untagged>,
    BTreeMap<String, Value>, BTreeMap<&str, i32>, BTreeMap<u8, Value>, BTreeMap<i64, Value>,
    BTreeMap<u64, Value>, BTreeMap<i128, Value>, BTreeMap<u128, Value>, BTreeMap<bool, Value>,
    BTreeMap<char, Value>, BTreeMap<Option<i32>, Value>, BTreeMap<Outside, Value>,
    Option<BTreeMap<Cow<'_, str>, Option<Value>>>,
}

/// Texts of which every type reads at least one.
const TEXTS: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "-129",
    "65535",
    "2147483648",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "340282366920938463463374607431768211455",
    "-170141183460469231731687303715884105728",
    "1.0",
    "1.5",
    "-2.5e-3",
    "1e300",
    "5e-324",
    "0.1",
    "3.4028236e38",
    "1e400000000000000e0",
    r#""""#,
    r#""a""#,
    r#""é""#,
    r#""\n""#,
    r#""\ud83d\ude00""#,
    r#""Unit""#,
    r#""\u0055nit""#,
    r#""New""#,
    r#""Nope""#,
    r#""true""#,
    r#""1""#,
    "[]",
    "[1]",
    "[1,2]",
    "[1,2,3]",
    "[1,\"x\"]",
    "[null]",
    "[true,false]",
    "[256]",
    "[[1,2],[]]",
    r#"["Unit",{"New":7},{"Tuple":[1,"x"]},{"Struct":{"a":1}}]"#,
    "[1,null]",
    r#"[1,"x",[1,2]]"#,
    "[5,true]",
    "{}",
    r#"{"a":1}"#,
    r#"{"a":1,"b":"x","c":[1,2],"d":{}}"#,
    r#"{"a":null,"b":true}"#,
    r#"{"a":"x","b":"y"}"#,
    r#"{"a":"x\n","b":"y"}"#,
    r#"{"\u0061":"x","b":"\n"}"#,
    r#"{"a":1.5,"b":2,"c":null,"d":[1],"e":{"f":"g"}}"#,
    r#"{"b":2,"c":null}"#,
    r#"{"New":1}"#,
    r#"{"New":256}"#,
    r#"{"Unit":null}"#,
    r#"{"Unit":1}"#,
    r#"{"Tuple":[1,"x"]}"#,
    r#"{"Tuple":[1]}"#,
    r#"{"Struct":{"a":1}}"#,
    r#"{"Struct":[1,2]}"#,
    r#"{"Struct":{}}"#,
    r#"{"Unit":null,"New":1}"#,
    r#"{"Nope":1}"#,
    r#"{"kind":"Unit"}"#,
    r#"{"kind":"New","b":1}"#,
    r#"{"a":1,"kind":"Struct","b":2.5}"#,
    r#"{"a":5,"kind":"New"}"#,
    r#"{"kind":"Tuple","a":[1,2]}"#,
    r#"{"kind":"Struct","a":{"b":"x"}}"#,
    r#"["Unit"]"#,
    r#"["New",{"b":1}]"#,
    r#"{"1":1,"2":2}"#,
    r#"{"-1":1}"#,
    r#"{"1.5":1}"#,
    r#"{"1.0":1}"#,
    r#"{" 1":1}"#,
    r#"{"1 ":1}"#,
    r#"{"01":1}"#,
    r#"{"+1":1}"#,
    r#"{"\u0031":1}"#,
    r#"{"":1}"#,
    r#"{"-0":1}"#,
    r#"{"300":1}"#,
    r#"{"18446744073709551616":1}"#,
    r#"{"true":1,"false":0}"#,
    r#"{"truer":1}"#,
    r#"{"\u0074rue":1}"#,
    r#"{"x":1,"é":2}"#,
    r#"{"xy":1}"#,
    r#"{"Unit":1,"\u0055nit2":2}"#,
    r#"{"\u0055nit":1}"#,
    r#"{"null":1}"#,
    r#"{"\n":1}"#,
];

#[test]
fn texts_of_every_shape_are_read_alike_by_every_type() {
    let mut read = vec![0; TYPES.len()];
    for text in TEXTS {
        if parse(text).is_err() {
            continue;
        }
        for (count, reads) in read.iter_mut().zip(readers(text)) {
            *count += usize::from(reads);
        }
    }
    for (name, count) in TYPES.iter().zip(read) {
        assert!(count > 0, "{name} reads none of the texts");
    }
}

/// JSON made of what the types above have in their names, so that they fit often.
fn json() -> impl Strategy<Value = String> {
    // Not beginning with another character than ASCII's: `serde_json` breaks it in two where a key
    // should be a boolean, and then cannot say what it found.
    let word = || {
        prop::sample::select(vec![
            "a", "b", "c", "kind", "Unit", "New", "Tuple", "Struct", "1", "-7", "true", "xé", "\n",
            "\"",
        ])
    };
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        (-3..300_i32).prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<u64>().prop_map(|value| value.to_string()),
        any::<i128>().prop_map(|value| value.to_string()),
        (-1e30..1e30_f64).prop_map(|value| format!("{value:?}")),
        Just("2.0".to_owned()),
        word().prop_map(|word| Value::from(word).to_string()),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map(word(), inner, 0..4).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", Value::from(*name)))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_json_is_read_alike_by_every_type(text in json()) {
        readers(&text);
    }
}

#[test]
fn a_float_is_the_double_rounded() {
    // Not among the types above: `serde_json` reads them otherwise if it is built to read doubles
    // exactly.
    for text in ["1.5", "0.1", "7", "-7", "-0", "1e300", "16777217"] {
        let tape = parse(text).unwrap();
        let double = f64::deserialize(tape.root()).unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "that is what is meant")]
        let rounded = double as f32;
        assert_eq!(f32::deserialize(tape.root()).unwrap().to_bits(), rounded.to_bits(), "{text}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    fn error<'a, T: Deserialize<'a> + fmt::Debug>(tape: &'a toolcrib_json::Tape<'a>) -> String {
        T::deserialize(tape.root()).expect_err("a wrong value").to_string()
    }
    let check = |text: &str, read: fn(&toolcrib_json::Tape<'_>) -> String, expected: &str| {
        assert_eq!(read(&parse(text).unwrap()), expected, "{text}");
    };
    check(
        r#"{"a": "5"}"#,
        |tape| error::<Plain>(tape),
        r#"invalid type: string "5", expected i32 at `/a`"#,
    );
    check(r#"{"b": "x"}"#, |tape| error::<Plain>(tape), "missing field `a` at the top level");
    check(
        r#"[{"a": 1}, {"a": 1, "c": [1, 256]}]"#,
        |tape| error::<Vec<Plain>>(tape),
        "invalid value: integer `256`, expected u8 at `/1/c/1`",
    );
    check(
        r#"{"a": 1, "x/y": 2}"#,
        |tape| error::<Strict>(tape),
        "unknown field `x/y`, expected `a` or `b` at `/x~1y`",
    );
    check(
        r#"{"a": null}"#,
        |tape| error::<Plain>(tape),
        "invalid type: null, expected i32 at `/a`",
    );
    check(
        r#"[{"Nope": 1}]"#,
        |tape| error::<Vec<Outside>>(tape),
        "unknown variant `Nope`, expected one of `Unit`, `New`, `Tuple`, `Struct` at `/0/Nope`",
    );
    check(
        r#"{"New": 1, "Unit": null}"#,
        |tape| error::<Outside>(tape),
        "invalid length 2, expected an object whose only key is the name of a variant at the top \
         level",
    );
    check(
        "[7]",
        |tape| error::<Vec<Outside>>(tape),
        "invalid type: integer `7`, expected the name of a variant, or an object with it as the \
         only key at `/0`",
    );
    check(
        r#"["New"]"#,
        |tape| error::<Vec<Outside>>(tape),
        "invalid type: unit variant, expected newtype variant at `/0`",
    );
    check(
        "[[1, 2, 3]]",
        |tape| error::<Vec<[u8; 2]>>(tape),
        "invalid length 3, expected 2 at `/0`",
    );
    check(
        r#"{"x": {"\n": 1}}"#,
        |tape| error::<BTreeMap<String, BTreeMap<u8, u8>>>(tape),
        "invalid type: string \"\\n\", expected u8 at `/x/\n`",
    );
}

#[test]
fn strings_without_escapes_are_borrowed_from_an_owned_tape() {
    let tape = toolcrib_json::parse_owned(r#"{"a":"plain","b":"x"}"#.to_owned()).unwrap();
    let read = Borrowing::deserialize(tape.root()).unwrap();
    assert_eq!(read, Borrowing { a: "plain".into(), b: Some("x") });
    assert_eq!(read.b.unwrap().as_ptr(), tape.text()[18..].as_ptr());
}
