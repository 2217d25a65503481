//! A PostgreSQL cluster with hosts that fail, lag or are stale; pgbouncer and TLS.
//!
//! | module | tests |
//! |---|---|
//! | `site` | none: a cluster and the service in process |
//! | `loss` | no read fails when a host does; writes find the next primary |
//! | `standbys` | which hosts are read from |
//! | `lag` | a lagging standby never returns older data |
//! | `stale_primary` | an old primary that comes back is ignored |
//! | `opening` | which hosts must be up to start |
//! | `pooler`, `tls` | pgbouncer; certificates |

mod lag;
mod loss;
mod opening;
mod pooler;
pub(crate) mod site;
mod stale_primary;
mod standbys;
mod tls;
