//! The schema of a batch, field by field from the model's own list: a field that is added must be told of here.

use batchscan_model::Field;
use batchscan_model::field::COUNT_MAX;
use batchscan_model::ids::BATCH_ID_BYTES_MAX;
use serde_json::{Value, json};

use super::node::{Node, object};

/// Two digits after the point, always (decision 035).
const DECIMAL: &str = r"^-?\d+\.\d{2}$";
/// In UTC; a fraction only where there is one, and without zeros at its end (decision 034).
const INSTANT: &str = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{0,5}[1-9])?Z$";

/// The schema. Every field is always there; a service of tomorrow may send more.
pub(super) fn schema() -> Node {
    let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
    let properties = Field::ALL.iter().map(|field| (field.name().to_owned(), property(*field)));
    object! {
        "type" => "object",
        "description" => "One tray scan session. Every field is always there; one without a value is null.",
        "required" => names,
        "properties" => Node::Object(properties.collect()),
        "examples" => [example()],
    }
}

/// A batch with a value in every field.
pub(super) fn example() -> Node {
    let members = Field::ALL.iter().map(|field| (field.name().to_owned(), told(*field).2.into()));
    Node::Object(members.collect())
}

fn property(field: Field) -> Node {
    let (kind, description, example) = told(field);
    let kind = kind.schema(field.is_nullable());
    kind.with("description", Some(description)).with("examples", Some([example]))
}

/// What stands in a field.
enum Kind {
    Id,
    Name,
    Text,
    Link,
    Instant,
    Count,
    Decimal,
    Flag,
}

impl Kind {
    fn schema(self, is_nullable: bool) -> Node {
        let typed = |name: &str| match is_nullable {
            true => object! { "type" => [name, "null"] },
            false => object! { "type" => name },
        };
        match self {
            Kind::Id => {
                typed("string").with("minLength", Some(1)).with("maxLength", Some(BATCH_ID_BYTES_MAX as u64))
            }
            Kind::Name => typed("string").with("minLength", Some(1)),
            Kind::Text => typed("string"),
            Kind::Link => typed("string").with("format", Some("uri")),
            Kind::Instant => typed("string").with("format", Some("date-time")).with("pattern", Some(INSTANT)),
            Kind::Count => {
                let count = typed("integer").with("format", Some("int64"));
                count.with("minimum", Some(0)).with("maximum", Some(COUNT_MAX))
            }
            Kind::Decimal => typed("string").with("pattern", Some(DECIMAL)),
            Kind::Flag => typed("boolean"),
        }
    }
}

/// What stands in a field, what it means, and a value of it.
///
/// An e-mail address has no format here: whoever scans may write what they like, and it is served as it was written.
fn told(field: Field) -> (Kind, &'static str, Value) {
    let decimal = |meaning, value: &str| (Kind::Decimal, meaning, json!(value));
    match field {
        Field::BatchId => (Kind::Id, "The batch's identifier, unique in its organisation", json!("b-000123")),
        Field::BatchName => (Kind::Name, "What people call the batch", json!("Roma wk 5 house 1")),
        Field::BatchCreationDate => {
            (Kind::Instant, "When the batch was made, in UTC", json!("2026-01-31T08:00:00Z"))
        }
        Field::CropType => (Kind::Text, "What grows in the tray", json!("Tomato 'Roma'")),
        Field::NumberOfImages => (Kind::Count, "How many images were taken", json!(12)),
        Field::TotalCellsPerTray => (Kind::Count, "How many cells a tray has", json!(128)),
        Field::AvgGerminatedSeedlings => decimal("Germinated seedlings of a tray, on average", "118.40"),
        Field::AvgNonGerminatedSeedlings => {
            decimal("Seedlings of a tray that did not germinate, on average", "9.60")
        }
        Field::AvgGerminationRate => decimal("Average germination rate, in percent", "92.50"),
        Field::AvgUsableSeedlings => decimal("Usable seedlings of a tray, on average", "110.00"),
        Field::AvgNonUsableCells => decimal("Cells of a tray without a usable one, on average", "18.00"),
        Field::AvgUsableSeedlingRate => decimal("Average rate of usable seedlings, in percent", "85.94"),
        Field::AvgCoefficientOfVariation => decimal(
            "How much seedlings differ in size: the average coefficient of variation, in percent",
            "24.07",
        ),
        Field::AvgMedianSeedlingSizeMm2 => {
            decimal("Average of the trays' median seedling sizes, in square millimetres", "41.25")
        }
        Field::ScannedByEmail => {
            (Kind::Text, "The e-mail address of whoever ran the scan", json!("ann@example.org"))
        }
        Field::AnalysisLink => {
            (Kind::Link, "Where the full report is", json!("https://reports.example.org/b-000123"))
        }
        Field::Comment => (Kind::Text, "A remark on the batch", json!("sown a day late")),
        Field::Warnings => (Kind::Flag, "Whether there is any warning", json!(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::Batch;

    /// Interface section 2, and decision 046: the document cannot differ from what the model takes.
    #[test]
    fn a_field_is_nullable_where_the_model_takes_a_batch_without_it() {
        for field in Field::ALL {
            let mut batch = serde_json::to_value(example()).unwrap();
            batch[field.name()] = Value::Null;
            assert_eq!(Batch::from_json(&batch.to_string()).is_ok(), field.is_nullable(), "{field}");
        }
    }

    /// Decision 046.
    #[test]
    fn the_example_is_a_batch_and_prints_as_itself() {
        let text = serde_json::to_string(&example()).unwrap();
        assert_eq!(Batch::from_json(&text).unwrap().to_json(), text);
    }
}
