//! The versions of the API.

/// The version of the API to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// `/v1`: one array. A lost connection ends the stream with an error.
    V1,
    /// `/v2`: pages with a cursor. A page that was interrupted is requested again.
    #[default]
    V2,
}

impl Version {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V2 => "v2",
        }
    }
}
