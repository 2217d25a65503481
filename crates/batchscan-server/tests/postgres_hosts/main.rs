//! A database of several hosts, some of which fail, lag, or do not know that they were replaced; and what people
//! put between a service and its database.
//!
//! | module | claims |
//! |---|---|
//! | `site` | none: a cluster, a store over it, and the service in process |
//! | `loss` | no read fails when a host does; writes find the next primary |
//! | `standbys` | who is read from |
//! | `lag` | nobody is led back in time by a standby that is behind |
//! | `left_behind` | an old primary that came back is nobody's primary |
//! | `opening` | what must be up for a service to start |
//! | `pooler`, `tls` | pgbouncer; certificates |

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and so does what it is made of"
)]

mod lag;
mod left_behind;
mod loss;
mod opening;
mod pooler;
mod site;
mod standbys;
mod tls;
