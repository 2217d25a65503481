//! HAProxy in front of the nodes, with the configuration from `deploy/haproxy`. Only addresses, TLS, the connection limit
//! and socket buffers are changed. A line that is not found is an error, so that the tested file is the deployed one.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use batchscan_testbed::{HaProxy, http, ports, wait_until};

use super::service::Service;
use crate::workspace::Workspace;

const DEPLOYED: &str = "deploy/haproxy/haproxy.cfg";
/// Two file descriptors each; a developer's limit may be low.
const CONNECTIONS_MAX: u32 = 400;
/// On loopback the kernel buffers megabytes, so a node would finish a stream long before its client does. Over a network
/// it buffers about this much.
const SOCKET_BYTES: u32 = 64 << 10;
/// Only to prevent hanging.
const UP_TIMEOUT: Duration = Duration::from_secs(300);

/// A running HAProxy. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Balancer {
    haproxy: HaProxy,
    pub(crate) port: u16,
    statistics_port: u16,
}

impl Balancer {
    /// Starts HAProxy and waits until it considers every node up.
    pub(crate) fn start(workspace: &Workspace, nodes: &[Service]) -> Result<Self> {
        let deployed = std::fs::read_to_string(workspace.root.join(DEPLOYED)).context(DEPLOYED)?;
        let (port, statistics_port) = (ports::free()?, ports::free()?);
        let nodes: Vec<(u16, u16)> = nodes.iter().map(|node| (node.port, node.operator_port)).collect();
        let configuration = on_loopback(&deployed, port, statistics_port, &nodes).context(DEPLOYED)?;
        let balancer = Self { haproxy: HaProxy::start(&configuration)?, port, statistics_port };
        balancer.wait_until_all_are_up()?;
        Ok(balancer)
    }

    pub(crate) fn wait_until_all_are_up(&self) -> Result<()> {
        let address = ("127.0.0.1", self.statistics_port);
        let is_up = || {
            let statistics = http::request(address, "GET /;csv HTTP/1.1", "");
            statistics.is_ok_and(|statistics| all_are_up(statistics.text()))
        };
        if !wait_until(UP_TIMEOUT, is_up) {
            bail!("HAProxy does not consider all nodes up after {UP_TIMEOUT:?}");
        }
        Ok(())
    }

    /// What HAProxy logs: requests, and nodes going up and down.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.haproxy.folder().join("log")
    }
}

/// The deployed configuration with ports on loopback. Each node has a port for clients and one for health checks.
fn on_loopback(deployed: &str, port: u16, statistics_port: u16, nodes: &[(u16, u16)]) -> Result<String> {
    let mut nodes = nodes.iter();
    let mut changed = [0; 3];
    let mut lines = Vec::new();
    for line in deployed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        lines.push(match words[..] {
            ["bind", _, "ssl", ..] => {
                changed[0] += 1;
                format!("    bind 127.0.0.1:{port}")
            }
            ["bind", ..] => {
                changed[1] += 1;
                format!("    bind 127.0.0.1:{statistics_port}")
            }
            ["maxconn", _] => {
                changed[2] += 1;
                format!(
                    "    maxconn {CONNECTIONS_MAX}\n    tune.sndbuf.client {SOCKET_BYTES}\n    \
                     tune.rcvbuf.server {SOCKET_BYTES}"
                )
            }
            ["server", name, _, ref options @ ..] => {
                let (port, operator_port) = nodes.next().context("more servers than nodes")?;
                // The last port overrides that of `default-server`.
                format!("    server {name} 127.0.0.1:{port} {} port {operator_port}", options.join(" "))
            }
            _ => line.to_owned(),
        });
    }
    if changed != [1; 3] || nodes.len() > 0 {
        bail!("expected one `bind … ssl`, one other `bind`, one `maxconn`, and a `server` for every node");
    }
    Ok(lines.join("\n") + "\n")
}

/// Reads HAProxy's statistics, where servers are rows such as `nodes,node1,…,UP,…`.
fn all_are_up(statistics: &str) -> bool {
    let mut servers = statistics.lines().filter(|row| row.starts_with("nodes,node")).peekable();
    servers.peek().is_some() && servers.all(|row| row.contains(",UP,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYED: &str = include_str!("../../../deploy/haproxy/haproxy.cfg");
    const NODES: &[(u16, u16)] = &[(11, 21), (12, 22), (13, 23)];

    #[test]
    fn only_addresses_tls_and_limits_differ_from_the_deployed_file() {
        let made = on_loopback(DEPLOYED, 1, 2, NODES).unwrap();
        let added: Vec<&str> = made
            .lines()
            .filter(|line| !DEPLOYED.lines().any(|deployed| deployed == *line))
            .map(str::trim)
            .collect();
        let removed = DEPLOYED.lines().filter(|line| !made.lines().any(|made| made == *line)).count();
        assert_eq!((added.len(), removed), (8, 6));
        assert_eq!(added[3], "bind 127.0.0.1:1");
        assert!(
            added[4].starts_with("server node1 127.0.0.1:11 ") && added[4].ends_with(" port 21"),
            "{}",
            added[4]
        );
        assert_eq!(added[7], "bind 127.0.0.1:2");
    }

    #[test]
    fn a_deployed_file_of_another_form_is_rejected() {
        assert!(on_loopback(DEPLOYED, 1, 2, &NODES[..1]).is_err());
        assert!(on_loopback(&DEPLOYED.replace(" ssl crt", " crt"), 1, 2, NODES).is_err());
    }

    #[test]
    fn all_servers_must_be_up() {
        let table = |last: &str| format!("clients,FRONTEND,OPEN,\nnodes,node1,UP,\nnodes,node2,{last},\n");
        assert!(all_are_up(&table("UP")));
        assert!(!all_are_up(&table("UP 1/2")) && !all_are_up(&table("DOWN")) && !all_are_up(""));
    }
}
