//! Parses the URL of a PostgreSQL database with one or several hosts. Opens nothing, and never shows the password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::platform;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout of a request's statement: later, the response would be late (decision 028).
const STATEMENT_TIMEOUT_MILLIS: u32 = 4_000;
/// When a dead TCP peer is detected.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of hosts. A cluster has three or five.
const HOSTS_MAX: usize = 16;

/// How to connect to a PostgreSQL database.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// Each host with its connection settings.
    pub(super) hosts: Vec<(String, Config)>,
    pub(super) tls: TlsOptions,
    /// Whether statements stay prepared on a connection. Off behind a pooler in transaction mode.
    pub(super) prepare: bool,
    shown: String,
}

/// The settings from `sslmode` and `sslrootcert`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsOptions {
    pub(super) mode: SslMode,
    /// Whether the server's certificate is verified.
    pub(super) verify: bool,
    /// A file with root certificates; the system's if not set.
    pub(super) roots: Option<PathBuf>,
}

/// Parameters for the driver. It knows more, but we would ignore them.
const DRIVER_PARAMETERS: [&str; 9] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "options",
    "password",
    "port",
    "user",
];

/// An invalid PostgreSQL URL. Does not repeat the text, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostgresUrlError {
    /// The driver cannot parse it.
    #[error("{0}; write postgres://USER@HOST:PORT/DATABASE")]
    Unreadable(String),
    /// A password with special characters, part of which could be shown as a host or a parameter.
    #[error("write @, / and ? in a name or password as %40, %2F and %3F")]
    Unescaped,
    /// No host, or too many.
    #[error("specify 1 to {HOSTS_MAX} hosts")]
    Hosts,
    /// A Unix socket on a system without them.
    #[error("this system has no Unix sockets; write postgres://USER@HOST:PORT/DATABASE")]
    UnixSocket,
    /// No database.
    #[error("add the database after the last host: postgres://USER@HOST:PORT/DATABASE")]
    NoDatabase,
    /// A parameter that we do not know.
    #[error(
        "unknown parameter; supported: sslmode, sslrootcert, prepare, application_name, channel_binding, connect_timeout, options. Write ? and & in a password as %3F and %26"
    )]
    UnknownParameter,
    /// Root certificates that would not be used.
    #[error("sslrootcert requires sslmode=verify-full: the other modes do not verify the certificate")]
    UnusedRoots,
    /// An invalid value of a parameter.
    #[error("{parameter} must be {expected}")]
    Value {
        /// The parameter.
        parameter: &'static str,
        /// The valid values.
        expected: &'static str,
    },
}

impl FromStr for PostgresUrl {
    type Err = PostgresUrlError;

    fn from_str(text: &str) -> Result<Self, PostgresUrlError> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        if base.matches('@').count() > 1 || query.contains('@') {
            return Err(PostgresUrlError::Unescaped);
        }
        let parameters = Parameters::parse(query)?;
        let rest = if parameters.rest.is_empty() { String::new() } else { format!("?{}", parameters.rest) };
        let config = Config::from_str(&format!("{base}{rest}")).map_err(|error| {
            let cause =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            PostgresUrlError::Unreadable(cause)
        })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(PostgresUrlError::NoDatabase);
        }
        let hosts = hosts(&config, parameters.tls.mode)?;
        let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
        let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let shown =
            format!("postgres://{user}{}/{}", names.join(","), config.get_dbname().unwrap_or_default());
        Ok(Self { hosts, tls: parameters.tls, prepare: parameters.prepare, shown })
    }
}

impl PostgresUrl {
    /// `HOST:PORT` of every host.
    pub fn host_names(&self) -> String {
        self.hosts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
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

/// Our parameters, and the rest of the query for the driver.
struct Parameters {
    tls: TlsOptions,
    prepare: bool,
    rest: String,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, PostgresUrlError> {
        let mut tls = TlsOptions { mode: SslMode::Prefer, verify: false, roots: None };
        let mut prepare = true;
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => (tls.mode, tls.verify) = ssl_mode(&value)?,
                "sslrootcert" => tls.roots = Some(PathBuf::from(&*value)),
                "prepare" => prepare = on_or_off(&value)?,
                name if DRIVER_PARAMETERS.contains(&name) => drop(rest.append_pair(name, &value)),
                _ => return Err(PostgresUrlError::UnknownParameter),
            }
        }
        if tls.roots.is_some() && !tls.verify {
            return Err(PostgresUrlError::UnusedRoots);
        }
        // The driver decodes %20, but not the plus sign of form encoding.
        Ok(Self { tls, prepare, rest: rest.finish().replace('+', "%20") })
    }
}

fn ssl_mode(value: &str) -> Result<(SslMode, bool), PostgresUrlError> {
    match value {
        "disable" => Ok((SslMode::Disable, false)),
        "prefer" => Ok((SslMode::Prefer, false)),
        "require" => Ok((SslMode::Require, false)),
        "verify-full" => Ok((SslMode::Require, true)),
        _ => Err(PostgresUrlError::Value {
            parameter: "sslmode",
            expected: "disable, prefer, require or verify-full",
        }),
    }
}

fn on_or_off(value: &str) -> Result<bool, PostgresUrlError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(PostgresUrlError::Value { parameter: "prepare", expected: "on or off" }),
    }
}

/// One configuration for each host: we choose the host, not the driver.
fn hosts(config: &Config, mode: SslMode) -> Result<Vec<(String, Config)>, PostgresUrlError> {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    if hosts.is_empty() || hosts.len() > HOSTS_MAX {
        return Err(PostgresUrlError::Hosts);
    }
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let one = |(index, host): (usize, &Host)| {
        let mut one = shared_settings(config);
        one.ssl_mode(mode).port(port(index));
        let name = platform::set_host(&mut one, host).ok_or(PostgresUrlError::UnixSocket)?;
        Ok((format!("{name}:{}", port(index)), one))
    };
    hosts.iter().enumerate().map(one).collect()
}

fn shared_settings(config: &Config) -> Config {
    let mut one = Config::new();
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    one.application_name(config.get_application_name().unwrap_or("batchscan"));
    // A page's statements are planned once: planning them for each page's values took a sixth of the database's time.
    let options = format!(
        "-c statement_timeout={STATEMENT_TIMEOUT_MILLIS} -c plan_cache_mode=force_generic_plan {}",
        config.get_options().unwrap_or_default()
    );
    one.options(options.trim_end());
    one.connect_timeout(config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT));
    one.tcp_user_timeout(KEEPALIVE_TIMEOUT)
        .keepalives_idle(KEEPALIVE_TIMEOUT)
        .keepalives_interval(KEEPALIVE_TIMEOUT);
    one.channel_binding(config.get_channel_binding());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_port_and_the_password_is_hidden() {
        let url: PostgresUrl = "postgres://ann:s3cret@h1:5432,h2:5433,h3/db?sslmode=require".parse().unwrap();
        assert_eq!(url.to_string(), "postgres://ann@h1:5432,h2:5433,h3:5432/db");
        assert!(!format!("{url:?}").contains("s3cret"));
        assert_eq!(url.hosts[1].1.get_ports(), [5433]);
        assert_eq!(url.hosts[1].1.get_password(), Some(b"s3cret".as_slice()));
        assert_eq!(url.tls, TlsOptions { mode: SslMode::Require, verify: false, roots: None });
    }

    #[test]
    fn parameters_are_parsed_and_errors_name_them() {
        let url: PostgresUrl =
            "postgresql://a@h/db?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&prepare=off&application_name=a%20b"
                .parse()
                .unwrap();
        assert_eq!(url.tls.roots, Some("/etc/ca.pem".into()));
        assert!(url.tls.verify && !url.prepare);
        assert_eq!(url.hosts[0].1.get_application_name(), Some("a b"));
        let error = |text: &str| text.parse::<PostgresUrl>().unwrap_err().to_string();
        assert_eq!(
            error("postgres://a@h/db?sslmode=maybe"),
            "sslmode must be disable, prefer, require or verify-full"
        );
        assert_eq!(error("postgres://a@h/db?prepare=1"), "prepare must be on or off");
        assert_eq!(
            error("postgres://a:pw@h"),
            "add the database after the last host: postgres://USER@HOST:PORT/DATABASE"
        );
        assert_eq!(error("postgres:///db"), "specify 1 to 16 hosts");
        assert!(
            error("postgres://a@h/db?sslmode=require&sslrootcert=a.pem").starts_with("sslrootcert requires")
        );
        for unknown in ["sslcert=a.pem", "target_session_attrs=read-write", "Sslmode=require"] {
            assert!(
                error(&format!("postgres://a@h/db?{unknown}")).starts_with("unknown parameter"),
                "{unknown}"
            );
        }
        for unescaped in ["postgres://a:p@w@h/db", "postgres://a:1?pw@h/db", "postgres://a:1?dbname=pw@h/db"]
        {
            assert_eq!(error(unescaped), "write @, / and ? in a name or password as %40, %2F and %3F");
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
