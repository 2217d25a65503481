//! What is to be done with a page of `docs/recipes`: comments in it mark blocks to save and to run.
//!
//! Reads pages and touches nothing. `docs/recipes/README.md` explains the comments to writers.

use anyhow::{Context, Result, bail};

/// One thing to do, in the order of the page.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// The block becomes a file.
    Save { name: String, text: String },
    /// The block is run, as the language of its fence says.
    Run { language: String, text: String },
    /// The block has to be M.
    ParseAsM { text: String },
    /// A file has to hold the batches of v1; a `*` in its name stands for what a program chose.
    Holds { name: String },
}

/// The steps of a page; a page that shows nothing is a fault.
pub(crate) fn steps(page: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(comment) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let mut block = || block(&mut lines).with_context(|| format!("line {}: no block below", index + 1));
        steps.push(match comment.split_once(": ").unwrap_or((comment, "")) {
            ("save", name) => Step::Save { name: name.to_owned(), text: block()?.1 },
            ("holds every batch", name) => Step::Holds { name: name.to_owned() },
            ("run", "") => block().map(|(language, text)| Step::Run { language, text })?,
            ("parse as M", "") => Step::ParseAsM { text: block()?.1 },
            _ => bail!("line {}: nobody knows what \"{comment}\" asks for", index + 1),
        });
    }
    require_proof(&steps)?;
    Ok(steps)
}

/// The fenced block on the very next lines: its language and its text.
fn block<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Option<(String, String)> {
    let language = lines.next()?.1.strip_prefix("```")?.to_owned();
    let mut text = String::new();
    for (_, line) in lines {
        if line == "```" {
            return Some((language, text));
        }
        text.push_str(line);
        text.push('\n');
    }
    None
}

fn require_proof(steps: &[Step]) -> Result<()> {
    let is_run = steps.iter().any(|step| matches!(step, Step::Run { .. }));
    let is_proven = steps.iter().any(|step| matches!(step, Step::Holds { .. }));
    let is_parsed = steps.iter().any(|step| matches!(step, Step::ParseAsM { .. }));
    if !(is_parsed || is_run && is_proven) {
        bail!("it runs nothing, or nothing says which file then holds every batch");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(page: &str) -> String {
        format!("{:#}", steps(page).unwrap_err())
    }

    #[test]
    fn marked_blocks_are_steps_and_the_others_are_for_readers() {
        let page = "# Shell\n\n```bash\nrm -r /\n```\n\n<!-- save: a.txt -->\n```text\none\n\ntwo\n```\n\n\
                    <!-- run -->\n```bash\ncat a.txt\n```\n\n- `<!-- run -->`: a word\n\
                    <!-- holds every batch: b-*.csv -->\n";
        let expected = [
            Step::Save { name: "a.txt".into(), text: "one\n\ntwo\n".into() },
            Step::Run { language: "bash".into(), text: "cat a.txt\n".into() },
            Step::Holds { name: "b-*.csv".into() },
        ];
        assert_eq!(steps(page).unwrap(), expected);
    }

    #[test]
    fn a_mistyped_comment_is_no_way_to_skip_a_block() {
        assert_eq!(complaint("<!-- runs -->\n```bash\n```\n"), "line 1: nobody knows what \"runs\" asks for");
        assert_eq!(complaint("\n<!-- run -->\n\n```bash\n```\n"), "line 2: no block below");
        assert_eq!(complaint("<!-- run -->\n```bash\ntrue\n"), "line 1: no block below");
    }

    #[test]
    fn a_page_has_to_prove_something() {
        let remedy = "it runs nothing, or nothing says which file then holds every batch";
        assert_eq!(complaint("# Words\n"), remedy);
        assert_eq!(complaint("<!-- run -->\n```bash\n```\n"), remedy);
        assert_eq!(complaint("<!-- holds every batch: a.csv -->\n"), remedy);
        assert_eq!(steps("<!-- parse as M -->\n```powerquery\n1\n```\n").unwrap().len(), 1);
    }
}
