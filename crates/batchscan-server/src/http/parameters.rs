//! Decoded parameters of a query or a form.

use std::borrow::Cow;

use batchscan_model::Reason;

/// Names and values, in order.
pub(crate) struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    pub(crate) fn parse(encoded: &'a [u8]) -> Self {
        Self(form_urlencoded::parse(encoded).collect())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// Whether a parameter was sent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// The value of a parameter. A repeated parameter is an error (decision 016).
    pub(crate) fn value(&self, name: &str) -> Result<Option<&str>, Reason> {
        let mut values = self.0.iter().filter(|(key, _)| key == name);
        let first = values.next();
        if values.next().is_some() { Err(Reason::Repeated) } else { Ok(first.map(|(_, value)| &**value)) }
    }
}
