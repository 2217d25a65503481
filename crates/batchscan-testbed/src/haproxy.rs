//! HAProxy, with a configuration that the caller writes.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::home::Home;
use crate::{ports, programs};

/// A running HAProxy. Dropping it removes it.
#[derive(Debug)]
pub struct HaProxy {
    home: Home,
    /// Those it binds, as the configuration has them.
    ports: Vec<u16>,
}

impl HaProxy {
    /// Starts HAProxy and waits until it listens on every port that a `bind` line names.
    ///
    /// # Errors
    ///
    /// When it is not installed, or does not start; then with what it said.
    pub fn start(configuration: &str) -> Result<Self> {
        let ports = bound_ports(configuration);
        if ports.is_empty() {
            bail!("the configuration has no `bind` line with a port");
        }
        let home = Home::new("haproxy", "")?;
        fs::write(home.folder().join("haproxy.cfg"), configuration)?;
        let haproxy = Self { home, ports };
        haproxy.start_again()?;
        Ok(haproxy)
    }

    /// Starts it after a kill, with the same configuration.
    ///
    /// # Errors
    ///
    /// When it runs, or does not start.
    pub fn start_again(&self) -> Result<()> {
        let mut command = Command::new(programs::server("haproxy")?);
        // In the foreground, as one process.
        command.arg("-db").arg("-f").arg(self.home.folder().join("haproxy.cfg"));
        self.home.start(&mut command, || self.ports.iter().all(|port| ports::is_listening(*port)))
    }

    /// SIGKILL; when this returns, it is gone.
    ///
    /// # Errors
    ///
    /// When it does not end.
    pub fn kill(&self) -> Result<()> {
        self.home.kill()
    }

    /// Whether its process is there.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.home.is_running()
    }

    /// All that it wrote to its standard streams.
    #[must_use]
    pub fn log(&self) -> String {
        self.home.log()
    }
}

fn bound_ports(configuration: &str) -> Vec<u16> {
    let port = |line: &str| {
        let (_, address) = line.trim().split_once("bind ")?;
        address.split_whitespace().next()?.rsplit_once(':')?.1.parse().ok()
    };
    configuration.lines().filter(|line| line.trim_start().starts_with("bind ")).filter_map(port).collect()
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
