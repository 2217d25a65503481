//! Defaults that the service or its operator API has, too, as an option shows them.

use std::sync::LazyLock;

use batchscan_server::config::Config;
use batchscan_server::operator::{KEEP_REMOVALS_DAYS, RETIRE_AFTER_DAYS};
use batchscan_store::CONNECTIONS_DEFAULT;

type Text = LazyLock<String>;

static CONFIG: LazyLock<Config> = LazyLock::new(Config::default);

pub(super) const LISTEN: &str = "127.0.0.1:8080";
pub(super) static TOKEN_TTL: Text = Text::new(|| format!("{}h", CONFIG.token_ttl_secs / 3_600));
pub(super) static PAGE_SIZE: Text = Text::new(|| CONFIG.page_rows.to_string());
pub(super) static MAX_IMPORT: Text = Text::new(|| format!("{}G", CONFIG.import_bytes_max >> 30));
pub(super) static CACHE_MIB: Text = Text::new(|| (CONFIG.cache_bytes >> 20).to_string());
pub(super) static DATABASE_CONNECTIONS: Text = Text::new(|| CONNECTIONS_DEFAULT.to_string());
pub(super) static RETIRE_AFTER: Text = Text::new(|| format!("{RETIRE_AFTER_DAYS}d"));
pub(super) static KEEP_REMOVALS: Text = Text::new(|| KEEP_REMOVALS_DAYS.to_string());
