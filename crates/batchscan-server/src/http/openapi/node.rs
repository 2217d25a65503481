//! JSON whose members stand in the order they were written in: people read the document too. `serde_json` sorts its own.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// A piece of the document.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A text, a number, a flag; or an example, whose order is nobody's concern.
    Leaf(Value),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// An object: `object! { "type" => "string", "minLength" => 1 }`.
macro_rules! object {
    ($($name:expr => $value:expr),* $(,)?) => {
        $crate::http::openapi::node::Node::Object(vec![
            $((String::from($name), $crate::http::openapi::node::Node::from($value))),*
        ])
    };
}
pub(super) use object;

impl Node {
    /// The node with one more member, if it is an object and there is a value.
    pub(super) fn with(mut self, name: &str, value: Option<impl Into<Node>>) -> Self {
        if let (Node::Object(members), Some(value)) = (&mut self, value) {
            members.push((name.to_owned(), value.into()));
        }
        self
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Leaf(value) => value.serialize(serializer),
            Node::List(items) => items.serialize(serializer),
            Node::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Node::Leaf(value)
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Node::Leaf(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Node::Leaf(text.into())
    }
}

impl From<bool> for Node {
    fn from(flag: bool) -> Self {
        Node::Leaf(flag.into())
    }
}

impl From<u64> for Node {
    fn from(number: u64) -> Self {
        Node::Leaf(number.into())
    }
}

impl<T: Into<Node>> From<Vec<T>> for Node {
    fn from(items: Vec<T>) -> Self {
        Node::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Node>, const N: usize> From<[T; N]> for Node {
    fn from(items: [T; N]) -> Self {
        Node::List(items.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_the_order_they_were_written_in() {
        let node = object! { "z" => 1, "a" => object! { "y" => true, "b" => ["x"] } };
        let node = node.with("m", Some("n")).with("none", None::<Node>);
        assert_eq!(serde_json::to_string(&node).unwrap(), r#"{"z":1,"a":{"y":true,"b":["x"]},"m":"n"}"#);
    }
}
