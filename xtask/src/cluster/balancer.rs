//! HAProxy in front of the nodes, with the very configuration that operators are given: addresses are replaced, TLS is
//! left out, connections are fewer and sockets smaller, and nothing else. A line that is not found is a failure, so that what is tested cannot drift away
//! from what is deployed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use batchscan_testbed::{HaProxy, ports};

use super::http::Client;
use super::nodes::Node;
use crate::workspace::Workspace;

/// What operators are given, in the tree.
const DEPLOYED: &str = "deploy/haproxy/haproxy.cfg";
/// Two file descriptors each: a developer's own limit may be low.
const CONNECTIONS_MAX: u32 = 400;
/// On loopback the kernel lets sockets hold tens of megabytes, and whole streams would vanish in them: a node would be
/// done with an answer long before its client is. Over a network they hold about as much as this.
const SOCKET_BYTES: u32 = 64 << 10;
/// Two checks of a node that came back, on a busy machine.
const UP_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// A running HAProxy. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Balancer {
    haproxy: HaProxy,
    port: u16,
    operator: Client,
}

impl Balancer {
    /// Starts HAProxy in front of the nodes, and waits until it takes all of them for up.
    pub(crate) fn start(workspace: &Workspace, nodes: &[Node]) -> Result<Self> {
        let path = workspace.root.join(DEPLOYED);
        let deployed =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let places = Places {
            clients: ports::free()?,
            operator: ports::free()?,
            nodes: nodes.iter().map(|node| (node.port, node.operator_port)).collect(),
        };
        let configuration = on_loopback(&deployed, &places).with_context(|| DEPLOYED.to_owned())?;
        let haproxy = HaProxy::start(&configuration)?;
        let operator = Client::new(&format!("http://127.0.0.1:{}", places.operator));
        let balancer = Self { haproxy, port: places.clients, operator };
        balancer.wait_until_all_are_up()?;
        Ok(balancer)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until every node passes HAProxy's check.
    pub(crate) fn wait_until_all_are_up(&self) -> Result<()> {
        let deadline = Instant::now() + UP_LIMIT;
        while !all_are_up(&self.operator.text("/;csv").unwrap_or_default()) {
            if Instant::now() > deadline {
                bail!("HAProxy does not take all nodes for up after {UP_LIMIT:?}");
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// All that HAProxy wrote: a line for each request, and what happened to nodes.
    pub(crate) fn log(&self) -> String {
        self.haproxy.log()
    }
}

/// The ports of loopback that take the place of the deployed addresses.
struct Places {
    clients: u16,
    operator: u16,
    /// Each node's port for clients, and the one for health and metrics.
    nodes: Vec<(u16, u16)>,
}

/// The deployed configuration with these ports.
fn on_loopback(deployed: &str, places: &Places) -> Result<String> {
    let mut nodes = places.nodes.iter();
    let (mut tls_binds, mut plain_binds, mut limits) = (0, 0, 0);
    let mut lines = Vec::new();
    for line in deployed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        lines.push(match words[..] {
            ["bind", _, "ssl", ..] => {
                tls_binds += 1;
                format!("    bind 127.0.0.1:{}", places.clients)
            }
            ["bind", ..] => {
                plain_binds += 1;
                format!("    bind 127.0.0.1:{}", places.operator)
            }
            ["maxconn", _] => {
                limits += 1;
                format!(
                    "    maxconn {CONNECTIONS_MAX}\n    tune.sndbuf.client {SOCKET_BYTES}\n    \
                     tune.rcvbuf.server {SOCKET_BYTES}"
                )
            }
            ["server", name, _, ref options @ ..] => {
                let (port, operator_port) =
                    nodes.next().context("it has more servers than there are nodes")?;
                // The last port wins over that of `default-server`.
                let options = options.join(" ");
                format!("    server {name} 127.0.0.1:{port} {options} port {operator_port}")
            }
            _ => line.to_owned(),
        });
    }
    if (tls_binds, plain_binds, limits, nodes.len()) != (1, 1, 1, 0) {
        bail!(
            "it should have one `bind … ssl`, one other `bind`, one `maxconn`, and a `server` for every node"
        );
    }
    Ok(lines.join("\n") + "\n")
}

/// Reads HAProxy's table of statistics: the servers are those rows that are neither front- nor backends.
fn all_are_up(statistics: &str) -> bool {
    let mut rows = statistics.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap_or_default();
    let Some(status) = header.iter().position(|name| *name == "status") else { return false };
    let servers: Vec<&str> = rows
        .filter(|row| row.get(1).is_some_and(|name| !["FRONTEND", "BACKEND"].contains(name)))
        .filter_map(|row| row.get(status).copied())
        .collect();
    !servers.is_empty() && servers.iter().all(|status| *status == "UP")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYED: &str = include_str!("../../../deploy/haproxy/haproxy.cfg");

    fn places(nodes: &[(u16, u16)]) -> Places {
        Places { clients: 1, operator: 2, nodes: nodes.to_vec() }
    }

    #[test]
    fn what_operators_are_given_differs_in_addresses_tls_and_sizes_alone() {
        let made = on_loopback(DEPLOYED, &places(&[(11, 21), (12, 22), (13, 23)])).unwrap();
        let news: Vec<&str> = made
            .lines()
            .filter(|line| !DEPLOYED.lines().any(|deployed| deployed == *line))
            .map(str::trim)
            .collect();
        let gone = DEPLOYED.lines().filter(|line| !made.lines().any(|made| made == *line)).count();
        assert_eq!(gone, 6);
        assert_eq!(news[..3], ["maxconn 400", "tune.sndbuf.client 65536", "tune.rcvbuf.server 65536"]);
        assert_eq!(news[3], "bind 127.0.0.1:1");
        assert!(news[4].starts_with("server node1 127.0.0.1:11 "), "{}", news[4]);
        assert!(news[6].ends_with(" port 23"), "{}", news[6]);
        assert_eq!(news[7..], ["bind 127.0.0.1:2"]);
    }

    #[test]
    fn a_deployed_file_of_another_form_is_refused() {
        assert!(on_loopback(DEPLOYED, &places(&[(11, 21)])).is_err());
        assert!(on_loopback("bind :443 ssl crt x\n", &places(&[])).is_err());
        let changed = DEPLOYED.replace(" ssl crt", " crt");
        assert!(on_loopback(&changed, &places(&[(11, 21), (12, 22), (13, 23)])).is_err());
    }

    #[test]
    fn all_servers_must_be_up() {
        let table = |last: &str| {
            format!(
                "# pxname,svname,status,\nclients,FRONTEND,OPEN,\nnodes,node1,UP,\nnodes,node2,{last},\n\
                 nodes,BACKEND,UP,\n"
            )
        };
        assert!(all_are_up(&table("UP")));
        assert!(!all_are_up(&table("UP 1/2")));
        assert!(!all_are_up(&table("DOWN")));
        assert!(!all_are_up(""));
    }
}
