//! TLS to the database: `sslmode` and `sslrootcert` do what their names say.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::time::Duration;

use batchscan_store::{OpenError, Opening, Store};
use batchscan_testbed::{Postgres, Settings};
use rcgen::generate_simple_self_signed;

use crate::site::{harm, until};

/// A server that speaks TLS.
struct Guarded {
    postgres: Postgres,
}

impl Guarded {
    /// Its certificate, by which clients can know it, is for that name.
    async fn by(name: &str) -> Self {
        let guarded = Self { postgres: harm(|| Postgres::start(&Settings::default())) };
        let made = generate_simple_self_signed([name.to_owned()]).unwrap();
        guarded.keep("cert.pem", &made.cert.pem());
        guarded.keep("key.pem", &made.signing_key.serialize_pem());
        for (setting, value) in
            [("ssl_cert_file", guarded.file("cert.pem")), ("ssl_key_file", guarded.file("key.pem"))]
        {
            guarded.sql(&format!("ALTER SYSTEM SET {setting} = '{}'", value.display()));
        }
        guarded.sql("ALTER SYSTEM SET ssl = on");
        guarded.sql("SELECT pg_reload_conf()");
        until(Duration::from_secs(10), async || guarded.sql("SHOW ssl") == "on").await;
        guarded
    }

    fn file(&self, name: &str) -> PathBuf {
        self.postgres.folder().join(name)
    }

    /// PostgreSQL takes only a key that is its own, and that nobody else can read.
    fn keep(&self, name: &str, text: &str) {
        let (file, owner) = (self.file(name), fs::metadata(self.postgres.folder()).unwrap());
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    fn sql(&self, statement: &str) -> String {
        harm(|| self.postgres.sql("postgres", statement))
    }

    /// Opens a new database with these parameters, and gives whether its connections are encrypted.
    async fn open(&self, parameters: &str) -> Result<String, OpenError> {
        let database = harm(|| self.postgres.fresh_database());
        let url = format!("{}?{parameters}", self.postgres.url(&database)).parse().unwrap();
        let store = Store::open(&url, Opening::OR_MAKE).await?;
        store.ping().await.unwrap();
        let encrypted = format!(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = '{database}'"
        );
        Ok(self.sql(&encrypted))
    }

    /// Opens with every proof there is, by the root in that file.
    async fn open_by_root(&self, root: &str) -> Result<String, OpenError> {
        self.open(&format!("sslmode=verify-full&sslrootcert={}", self.file(root).display())).await
    }
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_as_sslmode_says() {
    let guarded = Guarded::by("127.0.0.1").await;
    for (mode, encrypted) in [("require", "t"), ("prefer", "t"), ("disable", "f")] {
        assert_eq!(guarded.open(&format!("sslmode={mode}")).await.unwrap(), encrypted, "{mode}");
    }
    assert_eq!(guarded.open("").await.unwrap(), "t", "where it can be had, it is taken");
    assert_eq!(guarded.open_by_root("cert.pem").await.unwrap(), "t");
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_prove_its_name_is_refused() {
    let (guarded, misnamed) = tokio::join!(Guarded::by("127.0.0.1"), Guarded::by("db.example.org"));
    let stranger = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    guarded.keep("stranger.pem", &stranger.cert.pem());
    let (unknown, wrong_name) =
        tokio::join!(guarded.open_by_root("stranger.pem"), misnamed.open_by_root("cert.pem"));
    for refused in [unknown.unwrap_err(), wrong_name.unwrap_err()] {
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused:?}");
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let postgres = harm(|| Postgres::start(&Settings::default()));
    let url = format!("{}?sslmode=require", postgres.url("postgres")).parse().unwrap();
    let refused = Store::open(&url, Opening::OR_MAKE).await.unwrap_err();
    assert!(refused.to_string().contains("TLS"), "{refused}");
}
