//! Whether a text of the guest is the JSON that it should be, without building it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Levels of arrays and objects. Every reader downstream, the client's too, recurses once per level.
const DEPTH: u32 = 64;

/// What the outermost value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Anything.
    Any,
    /// An object.
    Object,
    /// An object with a string `type`, as MCP content blocks have it.
    Typed,
}

/// Refuses a text that is not one JSON value of that shape, with a line that says where.
pub(crate) fn check(text: &str, shape: Shape) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let outermost = Value {
        depth: DEPTH,
        shape,
    };
    outermost
        .deserialize(&mut reader)
        .and_then(|()| reader.end())
        .map_err(|error| error.to_string())
}

/// One value. Strings and numbers are read in full, so that none fails later that passed here.
#[derive(Clone, Copy)]
struct Value {
    depth: u32,
    shape: Shape,
}

impl Value {
    fn inner<E: Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self {
                depth,
                shape: Shape::Any,
            }),
            None => Err(E::custom(format_args!(
                "nested more than {DEPTH} levels deep"
            ))),
        }
    }

    fn scalar<E: Error>(self) -> Result<(), E> {
        match self.shape {
            Shape::Any => Ok(()),
            Shape::Object | Shape::Typed => Err(E::custom("not an object")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Value {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar()
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.scalar()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.scalar()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.scalar()?;
        let item = self.inner()?;
        while items.next_element_seed(item)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let member = self.inner()?;
        let mut typed = false;
        while let Some(key) = members.next_key::<String>()? {
            if self.shape == Shape::Typed && key == "type" {
                members.next_value_seed(Text)?;
                typed = true;
            } else {
                members.next_value_seed(member)?;
            }
        }
        if self.shape == Shape::Typed && !typed {
            return Err(Error::custom("no member `type`"));
        }
        Ok(())
    }
}

/// A string and nothing else.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string for `type`")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json_of_that_shape_passes_and_the_rest_is_told_where() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let good = [
            ("null", Shape::Any),
            (" [1, -2.5e3, \"\\u00e4\", {\"a\": []}] ", Shape::Any),
            (&deep(64), Shape::Any),
            ("{}", Shape::Object),
            ("{\"a\": {\"type\": 1}, \"type\": \"text\"}", Shape::Typed),
        ];
        for (text, shape) in good {
            assert_eq!(check(text, shape), Ok(()), "{text}");
        }
        let bad = [
            ("", Shape::Any, "EOF"),
            ("NaN", Shape::Any, "column 1"),
            ("{} x", Shape::Any, "trailing characters at line 1 column 4"),
            ("\n\n[1,]", Shape::Any, "line 3 column 4"),
            (&deep(65), Shape::Any, "64 levels"),
            (&deep(1_000_000), Shape::Any, "64 levels"),
            ("\"\\ud800\"", Shape::Any, "column"),
            ("1e999", Shape::Any, "number out of range"),
            ("[]", Shape::Object, "not an object"),
            ("\"{}\"", Shape::Object, "not an object"),
            ("{}", Shape::Typed, "no member `type`"),
            ("{\"type\": 1}", Shape::Typed, "a string for `type`"),
        ];
        for (text, shape, says) in bad {
            let error = check(text, shape).unwrap_err();
            assert!(error.contains(says), "{says:?} is not in {error:?}");
        }
    }
}
