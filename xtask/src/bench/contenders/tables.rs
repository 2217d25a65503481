//! Questions to those who show a table: Datasette and ROAPI. They have no tokens and no cursors; a position stands in the
//! question itself.

use anyhow::{Result, bail};

use super::interface::{PAGE_BATCHES, WINDOWS};
use super::server::Server;
use super::{Asked, Contender, Form, Question};
use crate::bench::data::{Sample, Window};
use crate::bench::databases::ORGANISATION;
use crate::bench::exchange::Request;
use crate::bench::works::Work;

/// The columns that ROAPI is asked for; it would give the organisation's name with every batch.
const FIELDS: &str = "batch_id,batch_name,batch_creation_date,crop_type,number_of_images,total_cells_per_tray,\
                      avg_germinated_seedlings,avg_non_germinated_seedlings,avg_germination_rate,\
                      avg_usable_seedlings,avg_non_usable_cells,avg_usable_seedling_rate,\
                      avg_coefficient_of_variation,avg_median_seedling_size_mm2,scanned_by_email,analysis_link,\
                      comment,warnings";

/// What is asked for a work.
pub(super) fn question(server: &Server, work: Work, sample: &Sample) -> Result<Question> {
    // Both begin at a date, so the deep page begins with the first batch of an instant.
    let deep = sample.findable(server.batches / 10 * 9);
    let table = Table(server.contender);
    Ok(match work {
        Work::PageUncached => Question::one(table.first_page(), 0..PAGE_BATCHES),
        Work::PageDeep => Question::one(table.page_from(sample.date(deep)), deep..deep + PAGE_BATCHES),
        Work::Window => {
            let asked = sample
                .windows(WINDOWS)?
                .into_iter()
                .map(|window| Asked::new(table.window(&window), window.rows));
            Question { asked: asked.collect(), answer: Form::Batches }
        }
        _ => bail!("{} has no {}", server.contender.title(), work.name()),
    })
}

/// The request for everything at once.
pub(super) fn everything(contender: Contender) -> Request {
    Table(contender).everything()
}

struct Table(Contender);

impl Table {
    fn first_page(&self) -> Request {
        self.get("after_date=0&after_id=&end_date={number}", "limit=1000")
    }

    fn page_from(&self, (date, micros): &(String, i64)) -> Request {
        let datasette = format!("after_date={micros}&after_id=&end_date={{number}}");
        self.get(&datasette, &format!("limit=1000&{}", at_least(date)))
    }

    fn window(&self, window: &Window) -> Request {
        let end = window.end_micros / 1_000_000;
        let datasette = format!("after_date={}&after_id=&end_date={end}{{fraction}}", window.start_micros);
        let until = format!("filter%5Bbatch_creation_date%5Dlte=%27{}.{{fraction}}Z%27", window.end_second);
        self.get(&datasette, &format!("limit=1000&{}&{until}", at_least(&window.start)))
    }

    fn everything(&self) -> Request {
        match self.0 {
            Contender::Datasette => {
                Request::get(format!("/batches/all.json?_shape=array&organisation={}", escaped(ORGANISATION)))
            }
            _ => self.get("", ""),
        }
    }

    /// The query of the one or of the other.
    fn get(&self, datasette: &str, roapi: &str) -> Request {
        let organisation = escaped(ORGANISATION);
        Request::get(match self.0 {
            Contender::Datasette => {
                format!("/batches/page.json?_shape=array&organisation={organisation}&{datasette}")
            }
            _ => format!(
                "/api/tables/batches?columns={FIELDS}&filter%5Borganisation%5D=%27{organisation}%27\
                 &sort=batch_creation_date,batch_id&{roapi}"
            ),
        })
    }
}

fn at_least(date: &str) -> String {
    format!("filter%5Bbatch_creation_date%5Dgte=%27{date}%27")
}

fn escaped(text: &str) -> String {
    text.replace(' ', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: fn() -> Window = || Window {
        rows: 5..25,
        start: "1970-01-01T00:00:50Z".to_owned(),
        start_micros: 50_000_000,
        end_second: "1970-01-01T00:04:01".to_owned(),
        end_micros: 241_000_000,
    };

    #[test]
    fn a_window_is_asked_of_datasette_in_microseconds() {
        assert_eq!(
            Table(Contender::Datasette).window(&WINDOW()).path,
            "/batches/page.json?_shape=array&organisation=Green%20Valley%20Nursery\
             &after_date=50000000&after_id=&end_date=241{fraction}"
        );
    }

    #[test]
    fn a_window_is_asked_of_roapi_by_dates() {
        let path = Table(Contender::Roapi).window(&WINDOW()).path;
        assert!(path.starts_with("/api/tables/batches?columns=batch_id,batch_name,"), "{path}");
        assert!(path.contains("&filter%5Bbatch_creation_date%5Dgte=%271970-01-01T00:00:50Z%27&"), "{path}");
        assert!(
            path.ends_with("dlte=%271970-01-01T00:04:01.{fraction}Z%27") || path.ends_with("Z%27"),
            "{path}"
        );
        assert!(!path.contains(' '), "{path}");
    }
}
