//! Follows every recipe to the letter, in an empty folder, and counts what came of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::bounded;
use super::homes::{Homes, MATRIX, PACKAGE, files_ending};
use super::recipe::{self, Step};
use super::service::Service;
use crate::workspace::Workspace;

const FOLDER: &str = "docs/recipes";
/// The index of the folder is no recipe.
const INDEX: &str = "README.md";

/// Far above what any block takes.
const BLOCK_LIMIT: Duration = Duration::from_secs(90);

/// Follows all of them.
pub(crate) fn run(workspace: &Workspace, homes: &Homes, service: &Service) -> Result<()> {
    for page in files_ending(&workspace.root.join(FOLDER), ".md")? {
        if page.ends_with(INDEX) {
            continue;
        }
        let name = workspace.relative(&page);
        let start = Instant::now();
        let cook = Cook::for_page(workspace, homes, service, &page)?;
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {name}"))?;
        cook.follow(&recipe::steps(&text).with_context(|| name.clone())?).with_context(|| name.clone())?;
        println!("{name}: followed in {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// One who follows a page in a folder of its own.
struct Cook<'a> {
    homes: &'a Homes,
    service: &'a Service,
    /// The program that lists the ids in a file.
    ids_of: PathBuf,
    /// Where `import batchscan` leads.
    package: PathBuf,
    folder: PathBuf,
}

impl<'a> Cook<'a> {
    fn for_page(workspace: &Workspace, homes: &'a Homes, service: &'a Service, page: &Path) -> Result<Self> {
        let recipes = workspace.scratch_file("recipes")?;
        let folder = recipes.join(page.file_stem().unwrap_or_default());
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let ids_of = workspace.root.join(MATRIX).join("ids_of.py");
        let package = workspace.root.join(PACKAGE).join("src");
        Ok(Self { homes, service, ids_of, package, folder })
    }

    fn follow(&self, steps: &[Step]) -> Result<()> {
        for (index, step) in steps.iter().enumerate() {
            match step {
                Step::Save { name, text } => drop(self.save(name, text)?),
                Step::Run { language, text } => self.run(index, language, text)?,
                Step::ParseAsM { text } => self.parse(&self.save("query.m", text)?)?,
                Step::Holds { name } => self.require_every_batch(name)?,
            }
        }
        Ok(())
    }

    fn save(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn run(&self, index: usize, language: &str, text: &str) -> Result<()> {
        let (program, options): (PathBuf, &[&str]) = match language {
            "bash" => ("bash".into(), &["-euo", "pipefail"]),
            "python" => (self.homes.python(), &[]),
            "r" => ("Rscript".into(), &["--no-init-file"]),
            _ => bail!("nothing runs a block of \"{language}\""),
        };
        let block = self.save(&format!("block-{index}.{language}"), text)?;
        let mut command = Command::new(program);
        self.here(command.args(options).arg(block))
    }

    fn parse(&self, query: &Path) -> Result<()> {
        let parser = self.homes.node_program("parse_power_query.mjs");
        self.here(Command::new("node").arg(parser).arg(query))
    }

    fn here(&self, command: &mut Command) -> Result<()> {
        command.current_dir(&self.folder).env("PATH", self.homes.path()?).env("PYTHONPATH", &self.package);
        bounded::stdout_within(BLOCK_LIMIT, self.service.tell(command)).map(drop)
    }

    /// Exactly the batches of v1, in its order.
    fn require_every_batch(&self, name: &str) -> Result<()> {
        let file = only_file(&self.folder, name)?;
        let mut command = Command::new(self.homes.python());
        let printed = bounded::stdout_within(BLOCK_LIMIT, command.arg(&self.ids_of).arg(file))?;
        let found: Vec<&str> = printed.lines().collect();
        if found != self.service.ids {
            let (found, expected) = (found.len(), self.service.ids.len());
            bail!("{name} holds {found} batches where v1 has {expected}, or others, or in another order");
        }
        Ok(())
    }
}

/// The file of this name, in which one `*` may stand for what a program chose.
fn only_file(folder: &Path, name: &str) -> Result<PathBuf> {
    let (start, ending) = name.split_once('*').unwrap_or((name, ""));
    let is_meant = |path: &PathBuf| {
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains('*') { own.starts_with(start) } else { own == name }
    };
    let mut files = files_ending(folder, ending)?;
    files.retain(is_meant);
    match files.pop() {
        Some(file) if files.is_empty() => Ok(file),
        Some(_) => bail!("{name} stands for more than one file"),
        None => bail!("{name} was not made"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_file() {
        let folder = std::env::temp_dir().join(format!("xtask-kitchen-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["a.csv", "b-1.csv", "c-1.csv", "c-2.csv"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let found = |name: &str| only_file(&folder, name).map_err(|error| error.to_string());
        assert_eq!(found("a.csv"), Ok(folder.join("a.csv")));
        assert_eq!(found("b-*.csv"), Ok(folder.join("b-1.csv")));
        assert_eq!(found("c-*.csv").unwrap_err(), "c-*.csv stands for more than one file");
        assert_eq!(found(".csv").unwrap_err(), ".csv was not made");
        fs::remove_dir_all(folder).unwrap();
    }
}
