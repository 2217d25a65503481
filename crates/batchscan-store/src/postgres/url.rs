//! The URL of a PostgreSQL database, with one or several hosts. Opens nothing, and never shows the password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// A connection that is not there within this time is not there.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// The longest a statement of a request may run: the answer would come too late (decision 028).
const STATEMENT_MILLIS_MAX: u32 = 4_000;
/// A peer that vanished without a word is noticed after this time.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Hosts in a URL: a cluster has three or five.
const HOSTS_MAX: usize = 16;

/// Where a PostgreSQL database is, and how to speak to it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// Each host with all that is needed to connect to it.
    pub(super) hosts: Vec<(String, Config)>,
    pub(super) tls: TlsWish,
    /// Whether statements stay prepared on a connection. Not behind a pooler that hands connections around.
    pub(super) prepare: bool,
    shown: String,
}

/// What `sslmode` and `sslrootcert` ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsWish {
    pub(super) mode: SslMode,
    /// Whether the server must prove its name.
    pub(super) verify: bool,
    /// Who may vouch for it; the system's roots if this is not set.
    pub(super) roots: Option<PathBuf>,
}

/// What is wrong with a PostgreSQL URL. Does not repeat it: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPostgresUrl {
    /// The driver cannot read it.
    #[error("{0}; write postgres://USER@HOST:PORT/DATABASE")]
    Unreadable(String),
    /// A password that reaches into what follows it, and would be shown as a host or a parameter.
    #[error("an @, / or ? in a name or password is written %40, %2F or %3F")]
    Unescaped,
    /// No host, or too many.
    #[error("name from 1 to {HOSTS_MAX} hosts")]
    Hosts,
    /// No database.
    #[error("name the database after the last host: postgres://USER@HOST:PORT/DATABASE")]
    NoDatabase,
    /// A parameter with a value it cannot have.
    #[error("{parameter} must be {expected}")]
    Value {
        /// The parameter.
        parameter: &'static str,
        /// What it can be.
        expected: &'static str,
    },
}

impl FromStr for PostgresUrl {
    type Err = BadPostgresUrl;

    fn from_str(text: &str) -> Result<Self, BadPostgresUrl> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        if place.matches('@').count() > 1 || query.contains('@') {
            return Err(BadPostgresUrl::Unescaped);
        }
        let ours = Ours::parse(query)?;
        let rest = if ours.rest.is_empty() { String::new() } else { format!("?{}", ours.rest) };
        let config = Config::from_str(&format!("{place}{rest}")).map_err(|error| {
            let cause =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            BadPostgresUrl::Unreadable(cause)
        })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(BadPostgresUrl::NoDatabase);
        }
        let hosts = hosts(&config, ours.tls.mode)?;
        let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
        let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let shown =
            format!("postgres://{user}{}/{}", names.join(","), config.get_dbname().unwrap_or_default());
        Ok(Self { hosts, tls: ours.tls, prepare: ours.prepare, shown })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresUrl").field(&self.shown).finish()
    }
}

/// The parameters that are not the driver's.
struct Ours {
    tls: TlsWish,
    prepare: bool,
    rest: String,
}

impl Ours {
    fn parse(query: &str) -> Result<Self, BadPostgresUrl> {
        let mut tls = TlsWish { mode: SslMode::Prefer, verify: false, roots: None };
        let mut prepare = true;
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => (tls.mode, tls.verify) = ssl_mode(&value)?,
                "sslrootcert" => tls.roots = Some(PathBuf::from(&*value)),
                "prepare" => prepare = on_or_off(&value)?,
                name if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                    rest.append_pair(name, &value);
                }
                _ => return Err(BadPostgresUrl::Unescaped),
            }
        }
        // The driver reads %20 and not the plus sign that forms have for a blank.
        Ok(Self { tls, prepare, rest: rest.finish().replace('+', "%20") })
    }
}

fn ssl_mode(value: &str) -> Result<(SslMode, bool), BadPostgresUrl> {
    match value {
        "disable" => Ok((SslMode::Disable, false)),
        "prefer" => Ok((SslMode::Prefer, false)),
        "require" => Ok((SslMode::Require, false)),
        "verify-full" => Ok((SslMode::Require, true)),
        _ => Err(BadPostgresUrl::Value {
            parameter: "sslmode",
            expected: "disable, prefer, require or verify-full",
        }),
    }
}

fn on_or_off(value: &str) -> Result<bool, BadPostgresUrl> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(BadPostgresUrl::Value { parameter: "prepare", expected: "on or off" }),
    }
}

/// One configuration for each host: which of them to speak to is decided here, not by the driver.
fn hosts(config: &Config, mode: SslMode) -> Result<Vec<(String, Config)>, BadPostgresUrl> {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    if hosts.is_empty() || hosts.len() > HOSTS_MAX {
        return Err(BadPostgresUrl::Hosts);
    }
    let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
    let one = |(place, host): (usize, &Host)| {
        let mut one = shared_parts(config);
        one.ssl_mode(mode).port(port(place));
        match host {
            Host::Tcp(name) => {
                one.host(name);
                (format!("{name}:{}", port(place)), one)
            }
            Host::Unix(path) => {
                one.host_path(path);
                (format!("{}:{}", path.display(), port(place)), one)
            }
        }
    };
    Ok(hosts.iter().enumerate().map(one).collect())
}

fn shared_parts(config: &Config) -> Config {
    let mut one = Config::new();
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    one.application_name(config.get_application_name().unwrap_or("batchscan"));
    let options =
        format!("-c statement_timeout={STATEMENT_MILLIS_MAX} {}", config.get_options().unwrap_or_default());
    one.options(options.trim_end());
    one.connect_timeout(config.get_connect_timeout().copied().unwrap_or(CONNECT_WAIT));
    one.tcp_user_timeout(SILENCE_MAX).keepalives_idle(SILENCE_MAX).keepalives_interval(SILENCE_MAX);
    one.channel_binding(config.get_channel_binding());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_gets_its_port_and_the_password_is_never_shown() {
        let url: PostgresUrl = "postgres://ann:s3cret@h1:5432,h2:5433,h3/db?sslmode=require".parse().unwrap();
        assert_eq!(url.to_string(), "postgres://ann@h1:5432,h2:5433,h3:5432/db");
        assert!(!format!("{url:?}").contains("s3cret"));
        assert_eq!(url.hosts[1].1.get_ports(), [5433]);
        assert_eq!(url.hosts[1].1.get_password(), Some(b"s3cret".as_slice()));
        assert_eq!(url.tls, TlsWish { mode: SslMode::Require, verify: false, roots: None });
    }

    #[test]
    fn parameters_are_read_and_wrong_ones_named() {
        let url: PostgresUrl =
            "postgresql://a@h/db?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&prepare=off&application_name=a%20b"
                .parse()
                .unwrap();
        assert_eq!(url.tls.roots, Some("/etc/ca.pem".into()));
        assert!(url.tls.verify && !url.prepare);
        assert_eq!(url.hosts[0].1.get_application_name(), Some("a b"));
        let told = |text: &str| text.parse::<PostgresUrl>().unwrap_err().to_string();
        assert_eq!(
            told("postgres://a@h/db?sslmode=maybe"),
            "sslmode must be disable, prefer, require or verify-full"
        );
        assert_eq!(told("postgres://a@h/db?prepare=1"), "prepare must be on or off");
        assert_eq!(
            told("postgres://a:pw@h"),
            "name the database after the last host: postgres://USER@HOST:PORT/DATABASE"
        );
        assert_eq!(told("postgres:///db"), "name from 1 to 16 hosts");
        for unescaped in ["postgres://a:p@w@h/db", "postgres://a:1?pw@h/db", "postgres://a:1?dbname=pw@h/db"]
        {
            assert_eq!(told(unescaped), "an @, / or ? in a name or password is written %40, %2F or %3F");
        }
        for bad in [
            "postgres://a:pw@h:port/db",
            "postgres://a:pw@h/db?colour=red",
            "postgres://a:pw@h1:1,h2:2,h3/db",
        ] {
            assert!(
                !bad.parse::<PostgresUrl>().is_err_and(|error| error.to_string().contains("pw")),
                "{bad}"
            );
        }
    }
}
