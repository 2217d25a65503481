//! TLS to the database: `sslmode` and `sslrootcert`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;

use batchscan_store::{OpenError, OpenOptions, Store};
use batchscan_testbed::{Postgres, Settings};
use rcgen::generate_simple_self_signed;

use super::site::{blocking, until};

/// A server with TLS.
struct TlsServer {
    postgres: Postgres,
}

impl TlsServer {
    /// With a certificate for this name.
    async fn start(name: &str) -> Self {
        let server = Self { postgres: blocking(|| Postgres::start(&Settings::default())) };
        let made = generate_simple_self_signed([name.to_owned()]).unwrap();
        server.write("cert.pem", &made.cert.pem());
        server.write("key.pem", &made.signing_key.serialize_pem());
        for (setting, value) in
            [("ssl_cert_file", server.file("cert.pem")), ("ssl_key_file", server.file("key.pem"))]
        {
            server.sql(&format!("ALTER SYSTEM SET {setting} = '{}'", value.display()));
        }
        server.sql("ALTER SYSTEM SET ssl = on");
        server.sql("SELECT pg_reload_conf()");
        until(async || server.sql("SHOW ssl") == "on").await;
        server
    }

    fn file(&self, name: &str) -> PathBuf {
        self.postgres.folder().join(name)
    }

    /// PostgreSQL accepts only a key that it owns and that no one else can read.
    fn write(&self, name: &str, text: &str) {
        let (file, owner) = (self.file(name), fs::metadata(self.postgres.folder()).unwrap());
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    fn sql(&self, statement: &str) -> String {
        blocking(|| self.postgres.sql("postgres", statement))
    }

    /// Opens a new database with these parameters. Returns whether its connections are encrypted.
    async fn open(&self, parameters: &str) -> Result<String, OpenError> {
        let database = blocking(|| self.postgres.fresh_database());
        let url = format!("{}?{parameters}", self.postgres.url(&database)).parse().unwrap();
        let store = Store::open(&url, OpenOptions::CREATE).await?;
        store.ping().await.unwrap();
        let encrypted = format!(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = '{database}'"
        );
        Ok(self.sql(&encrypted))
    }

    /// Opens a database with full verification and the root certificate in this file.
    async fn open_verified(&self, root: &str) -> Result<String, OpenError> {
        self.open(&format!("sslmode=verify-full&sslrootcert={}", self.file(root).display())).await
    }
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_as_sslmode_says() {
    let server = TlsServer::start("127.0.0.1").await;
    for (mode, encrypted) in [("require", "t"), ("prefer", "t"), ("disable", "f")] {
        assert_eq!(server.open(&format!("sslmode={mode}")).await.unwrap(), encrypted, "{mode}");
    }
    assert_eq!(server.open("").await.unwrap(), "t", "used if available");
    assert_eq!(server.open_verified("cert.pem").await.unwrap(), "t");
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_the_wrong_certificate_is_rejected() {
    let (server, misnamed) = tokio::join!(TlsServer::start("127.0.0.1"), TlsServer::start("db.example.org"));
    let unknown = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    server.write("unknown.pem", &unknown.cert.pem());
    let (unknown_root, wrong_name) =
        tokio::join!(server.open_verified("unknown.pem"), misnamed.open_verified("cert.pem"));
    for error in [unknown_root.unwrap_err(), wrong_name.unwrap_err()] {
        assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

/// Operating guide, "PostgreSQL".
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_rejected_if_tls_is_required() {
    let postgres = blocking(|| Postgres::start(&Settings::default()));
    let url = format!("{}?sslmode=require", postgres.url("postgres")).parse().unwrap();
    let error = Store::open(&url, OpenOptions::CREATE).await.unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error}");
}
