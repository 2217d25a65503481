//! How the files of an organisation are read: its time zone and its mapping.

use batchscan_formats::read::{Mapping, ReadOptions};
use batchscan_model::{UtcInstant, Zone};

use crate::change::Change;
use crate::errors::AdminError;
use crate::organisations::{lock_org, org_id};
use crate::sql::{Columns, invalid, values};
use crate::store::Store;

impl Store {
    /// Completes the options of one file with the settings of its organisation. A mapping that is given replaces the stored
    /// one; an empty one stands for none.
    pub async fn read_options(
        &self,
        org: &str,
        mapping: Option<Mapping>,
        mut given: ReadOptions,
    ) -> Result<ReadOptions, AdminError> {
        let (mut timezone, stored) = self.import_settings(org).await?;
        let stored = stored.as_deref().map(Mapping::parse).transpose().map_err(|_| invalid("mapping"))?;
        let is_none = mapping == Some(Mapping::default());
        timezone = timezone.or_else(|| stored.as_ref().filter(|_| is_none)?.timezone.clone());
        given.mapping = mapping.or(stored).unwrap_or_default();
        if given.timezone.is_none() && given.mapping.timezone.is_none() {
            given.timezone = timezone;
        }
        Ok(given)
    }

    /// The time zone and the mapping (TOML) of an organisation.
    pub async fn import_settings(&self, org: &str) -> Result<(Option<Zone>, Option<String>), AdminError> {
        let org = org.to_owned();
        let settings = |row: &dyn Columns| Ok((row.optional_string(0)?, row.optional_string(1)?));
        self.snapshot(async move |sql| {
            let org = org_id(sql, &org).await?;
            let query = "SELECT timezone, mapping FROM organisation WHERE id = $1";
            let (timezone, mapping) = sql.first(query, values![org], settings).await?.unwrap_or_default();
            let zone = |name: String| Zone::parse(&name).ok_or_else(|| invalid("time zone"));
            Ok((timezone.map(zone).transpose()?, mapping))
        })
        .await
    }

    /// Sets or clears the zone of times without one.
    pub async fn set_timezone(
        &self,
        org: &str,
        timezone: Option<&Zone>,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let (name, timezone) = (org.to_owned(), timezone.map(|zone| zone.name().to_owned()));
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            let set = "UPDATE organisation SET timezone = $2 WHERE id = $1";
            sql.execute(set, values![org, &timezone]).await?;
            let detail = format!("timezone {}", timezone.as_deref().unwrap_or("none"));
            Ok(((), vec![Change::of_org("org set", &name).detail(detail)]))
        })
        .await
    }

    /// Stores a mapping, which was parsed before, or clears it.
    pub async fn set_mapping(
        &self,
        org: &str,
        mapping: Option<String>,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let name = org.to_owned();
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            let set = "UPDATE organisation SET mapping = $2 WHERE id = $1";
            sql.execute(set, values![org, &mapping]).await?;
            let detail = if mapping.is_some() { "set" } else { "cleared" };
            Ok(((), vec![Change::of_org("org mapping", &name).detail(detail.to_owned())]))
        })
        .await
    }
}
