//! An operation, and what HEAD and OPTIONS make of its path.

use axum::http::StatusCode;

use super::answers::{Answer, Error};
use super::headers::Header;
use super::node::{Node, object};
use super::parameters;

/// The group of what every path does alike.
pub(super) const ALIKE: &str = "HEAD and OPTIONS";

/// What can be done at a path.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: Option<&'static str>,
    pub(super) is_deprecated: bool,
    /// Parameters by the names of their components.
    pub(super) parameters: &'static [&'static str],
    pub(super) body: Option<Node>,
    /// Answers of its own.
    pub(super) answers: Vec<Answer>,
    /// Errors besides those that can happen to any request.
    pub(super) errors: &'static [Error],
    /// The ways to say who is calling, any of which will do; none where nobody asks.
    pub(super) security: Option<Node>,
}

impl Operation {
    /// A path that is read: GET, HEAD, OPTIONS.
    pub(super) fn read(self, head_id: &str, options_id: &str) -> Node {
        object! {
            "get" => self.node(self.id),
            "head" => self.head().node(head_id),
            "options" => options(options_id),
        }
    }

    /// A path that takes a form: POST, OPTIONS.
    pub(super) fn post(self, options_id: &str) -> Node {
        object! { "post" => self.node(self.id), "options" => options(options_id) }
    }

    fn head(&self) -> Self {
        Self {
            tag: ALIKE,
            summary: "The headers of GET, without the body",
            description: None,
            answers: self.all_answers().iter().map(Answer::without_body).collect(),
            ..self.clone()
        }
    }

    /// In the order of their statuses. What HEAD makes of an error comes first and counts.
    fn all_answers(&self) -> Vec<Answer> {
        let mut answers = self.answers.clone();
        for error in self.errors.iter().chain(&Error::OF_ALL) {
            let answer = error.answer();
            if answers.iter().all(|own| own.status != answer.status) {
                answers.push(answer);
            }
        }
        answers.sort_by_key(|answer| answer.status);
        answers
    }

    fn node(&self, id: &str) -> Node {
        let answers = self.all_answers();
        let parameters = (!self.parameters.is_empty()).then(|| parameters::references(self.parameters));
        let responses = answers.iter().map(|answer| (answer.status.to_string(), answer.node()));
        object! { "tags" => [self.tag], "operationId" => id, "summary" => self.summary }
            .with("description", self.description)
            .with("deprecated", self.is_deprecated.then_some(true))
            .with("parameters", parameters)
            .with("requestBody", self.body.clone())
            .with("responses", Some(Node::Object(responses.collect())))
            .with("security", Some(self.security.clone().unwrap_or_else(|| Node::List(Vec::new()))))
    }
}

fn options(id: &str) -> Node {
    let headers = [Header::AllowUnlessPreflight];
    let allowed = Answer::new(StatusCode::NO_CONTENT, "The methods are in Allow.", &headers);
    let operation = Operation {
        id: "",
        tag: ALIKE,
        summary: "The methods of this path",
        description: None,
        is_deprecated: false,
        parameters: &[],
        body: None,
        answers: vec![allowed],
        errors: &[],
        security: None,
    };
    operation.node(id)
}
