//! Holds an answer against the batches it should hold, before it is timed.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::contenders::server::Server;
use super::contenders::{Asked, Contender, Form, Question};
use super::data::Sample;
use super::exchange::{Answer, Request};
use super::instants::micros_of;
use super::load::filled;
use super::works::Work;

/// Checks a few of the requests, and gives the size of the smallest body.
pub(crate) fn check(server: &Server, work: Work, question: &Question, sample: &Sample) -> Result<usize> {
    let known: Vec<&Asked> = question.asked.iter().filter(|asked| sample.holds(&asked.rows)).collect();
    let last = known.len().checked_sub(1).context("nothing is asked")?;
    let mut connection = server.connect()?;
    let mut least = usize::MAX;
    let mut places = vec![0, last / 2, last];
    places.dedup();
    let span = server.next_span();
    for place in places {
        let asked = known[place];
        let answer = connection.ask(&filled(&asked.request, span + place as u64))?;
        least = least.min(answer.body.len());
        require(server, work, question.answer, asked, &answer, sample).with_context(|| {
            format!("{} answers {} wrongly: {}", server.contender.title(), work.name(), asked.request.path)
        })?;
    }
    Ok(least)
}

fn require(
    server: &Server,
    work: Work,
    form: Form,
    asked: &Asked,
    answer: &Answer,
    sample: &Sample,
) -> Result<()> {
    let expected = if form == Form::NotModified { 304 } else { 200 };
    let status = answer.head.status;
    ensure!(status == expected, "{status} instead of {expected}: {}", String::from_utf8_lossy(&answer.body));
    match form {
        Form::NotModified => ensure!(answer.body.is_empty(), "304 with a body"),
        Form::Token => {
            let token = super::contenders::interface::token_in(&answer.body).context("no token")?;
            let page = server.connect()?.ask(&Request::get("/v2/batches").with_token(&token))?;
            ensure!(page.head.status == 200, "the token is answered with {}", page.head.status);
        }
        Form::Batches => {
            let body = decoded(answer, work.coding())?;
            let leaves_out_nulls = server.contender == Contender::Roapi;
            require_batches(&body, sample.lines(asked.rows.clone()), leaves_out_nulls)?;
        }
    }
    Ok(())
}

/// The body without the coding that it must have; any other is a fault.
fn decoded(answer: &Answer, coding: Option<&str>) -> Result<Vec<u8>> {
    let found = answer.head.header("content-encoding");
    ensure!(found == coding, "the coding is {found:?} instead of {coding:?}");
    match coding {
        None => Ok(answer.body.clone()),
        Some(program) => piped(Command::new(program).arg("-dc"), &answer.body),
    }
}

/// What a program makes of some bytes.
pub(crate) fn piped(command: &mut Command, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (mut stdin, mut stdout) = (stdin.context("no stdin")?, stdout.context("no stdout")?);
    let mut made = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        // A program that refuses its input says so by its exit.
        scope.spawn(move || drop(stdin.write_all(bytes)));
        stdout.read_to_end(&mut made)?;
        Ok(())
    })?;
    ensure!(child.wait()?.success(), "the bytes are not what they say they are");
    Ok(made)
}

/// The same batches, in the same order, with the same values.
fn require_batches(body: &[u8], lines: &[String], leaves_out_nulls: bool) -> Result<()> {
    let body: Value = serde_json::from_slice(body).context("the body is no JSON")?;
    let rows = rows_of(&body).context("the body holds no batches")?;
    ensure!(rows.len() == lines.len(), "{} batches instead of {}", rows.len(), lines.len());
    for (row, line) in rows.iter().zip(lines) {
        let expected: Value = serde_json::from_str(line)?;
        require_same(row, &expected, leaves_out_nulls)?;
    }
    Ok(())
}

fn rows_of(body: &Value) -> Option<&Vec<Value>> {
    ["data", "rows"].iter().find_map(|name| body.get(name)).unwrap_or(body).as_array()
}

fn require_same(row: &Value, expected: &Value, leaves_out_nulls: bool) -> Result<()> {
    let fields = expected.as_object().context("a line of the data is no object")?;
    for (name, value) in fields {
        let found = row.get(name).or(leaves_out_nulls.then_some(&Value::Null));
        let found = found.with_context(|| format!("a batch without {name}"))?;
        if !means(name, found, value) {
            bail!("{name} is {found} instead of {value} in batch {}", expected["batch_id"]);
        }
    }
    Ok(())
}

/// Whether a value means what the interface says in its own form. Contenders that show a table write dates as numbers or
/// with six digits, decimals as numbers or hundredths, and booleans as 0 and 1.
fn means(name: &str, found: &Value, expected: &Value) -> bool {
    if found == expected {
        return true;
    }
    match expected {
        Value::Bool(expected) => found.as_u64() == Some(u64::from(*expected)),
        Value::String(text) if name == "batch_creation_date" => {
            let found = found.as_i64().or_else(|| micros_of(found.as_str()?));
            found.is_some() && found == micros_of(text)
        }
        Value::String(text) if name.starts_with("avg_") => {
            let hundredths = text.replacen('.', "", 1).parse::<i64>().ok();
            let number =
                found.as_f64().filter(|_| found.is_f64()).map(|number| (number * 100.0).round() as i64);
            hundredths.is_some() && (found.as_i64() == hundredths || number == hundredths)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"batch_id":"a","batch_creation_date":"1970-01-01T00:00:01.5Z","avg_germination_rate":"82.05","comment":null,"warnings":false}"#;

    fn fault(body: &str) -> Option<String> {
        require_batches(body.as_bytes(), &[LINE.to_owned()], false).err().map(|error| error.to_string())
    }

    #[test]
    fn batches_are_the_same_however_they_are_wrapped() {
        assert_eq!(fault(&format!(r#"{{"data":[{LINE}],"next_token":null}}"#)), None);
        assert_eq!(fault(&format!(r#"{{"rows":[{LINE}]}}"#)), None);
        assert_eq!(fault(&format!("[{LINE}]")), None);
    }

    #[test]
    fn a_table_may_write_values_in_its_own_form() {
        let row = r#"[{"batch_id":"a","batch_creation_date":1500000,"avg_germination_rate":8205,"comment":null,"warnings":0}]"#;
        assert_eq!(fault(row), None);
        let row = r#"[{"batch_id":"a","batch_creation_date":"1970-01-01T00:00:01.500000Z","avg_germination_rate":82.05,"comment":null,"warnings":false}]"#;
        assert_eq!(fault(row), None);
    }

    #[test]
    fn another_value_a_missing_field_and_a_missing_batch_are_faults() {
        assert!(fault(&format!("[{}]", LINE.replace("82.05", "82.06"))).unwrap().contains("82.06"));
        assert!(fault(&format!("[{}]", LINE.replace("01.5Z", "01Z"))).is_some());
        assert!(
            fault(&format!("[{}]", LINE.replace("comment", "remark"))).unwrap().contains("without comment")
        );
        assert!(fault(&format!("[{}]", LINE.replace("null", "\"\""))).is_some());
        assert_eq!(fault("[]").unwrap(), "0 batches instead of 1");
        assert!(fault("{}").is_some());
    }

    #[test]
    fn a_null_may_be_left_out_where_that_is_the_form_and_nothing_else() {
        let body = |without: &str| format!("[{}]", LINE.replace(without, ""));
        let lines = [LINE.to_owned()];
        assert!(require_batches(body(r#""comment":null,"#).as_bytes(), &lines, true).is_ok());
        assert!(require_batches(body(r#","warnings":false"#).as_bytes(), &lines, true).is_err());
    }

    #[test]
    fn bytes_go_through_a_program() {
        assert_eq!(piped(Command::new("cat").arg("-"), b"abc").unwrap(), b"abc");
        assert!(piped(&mut Command::new("false"), b"abc").is_err());
    }
}
