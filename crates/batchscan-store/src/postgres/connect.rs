//! One connection to the primary, without a pool and monitors: for a user's own database.

use tokio_postgres::Client;
use tokio_postgres::config::TargetSessionAttrs;

use super::failure::describe;
use super::tls;
use super::url::PostgresUrl;

impl PostgresUrl {
    /// Connects to the first host that accepts writes. The error names the hosts.
    pub async fn connect_to_primary(&self) -> Result<Client, String> {
        let tls = tls::connector(&self.tls)?;
        let mut causes = Vec::new();
        for (host, config) in &self.hosts {
            let mut config = config.clone();
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            match config.connect(tls.clone()).await {
                Ok((client, connection)) => {
                    // Ends with the client. Its errors are also those of the client's requests.
                    tokio::spawn(connection);
                    return Ok(client);
                }
                Err(error) => {
                    let hint = match error.as_db_error() {
                        Some(_) => "",
                        None => {
                            "; check that the server is running, and the host, port and password in the URL"
                        }
                    };
                    causes.push(format!("{host}: {}{hint}", describe(&error)));
                }
            }
        }
        Err(causes.join("; "))
    }
}
