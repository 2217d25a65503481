//! HAProxy with the caller's configuration.

use std::fs;
use std::ops::Deref;
use std::process::Command;

use anyhow::{Result, bail};

use crate::server::Server;
use crate::{ports, programs};

/// A running HAProxy. Dropping it removes it.
#[derive(Debug)]
pub struct HaProxy {
    server: Server,
    ports: Vec<u16>,
}

impl Deref for HaProxy {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl HaProxy {
    /// Starts HAProxy and waits until it listens on the port of every `bind` line.
    pub fn start(configuration: &str) -> Result<Self> {
        let ports = bound_ports(configuration);
        if ports.is_empty() {
            bail!("the configuration has no `bind` line with a port");
        }
        let haproxy = Self { server: Server::new("haproxy", "")?, ports };
        fs::write(haproxy.server.folder().join("haproxy.cfg"), configuration)?;
        haproxy.start_again()?;
        Ok(haproxy)
    }

    /// Starts it after a kill, with the same configuration.
    pub fn start_again(&self) -> Result<()> {
        let mut command = Command::new(programs::server("haproxy")?);
        // -db: one process, in the foreground.
        command.arg("-db").arg("-f").arg(self.server.folder().join("haproxy.cfg"));
        self.server.start(&mut command, || self.ports.iter().all(|port| ports::is_listening(*port)))
    }
}

fn bound_ports(configuration: &str) -> Vec<u16> {
    let port = |line: &str| {
        let address = line.trim().strip_prefix("bind ")?.split_whitespace().next()?;
        address.rsplit_once(':')?.1.parse().ok()
    };
    configuration.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_are_those_of_bind_lines() {
        let configuration =
            "frontend a\n  bind 127.0.0.1:81\n  bind :82 ssl crt x\n  # bind :83\nserver b :84\n";
        assert_eq!(bound_ports(configuration), [81, 82]);
    }
}
