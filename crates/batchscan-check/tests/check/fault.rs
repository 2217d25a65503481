//! The ways in which the toy service can be wrong.

/// The one thing that is wrong.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    None,
    /// A deployment that has the interface and nothing beside it.
    Bare,
    CursorCircles,
    CursorNeverEnds,
    PagesOverlap,
    SecretEchoed,
    DecimalsAsNumbers,
    FieldMissing,
    FieldAdded,
    DateWithoutZ,
    IntegerAsString,
    NullName,
    PageTruncated,
    BodyCutOff,
    HtmlErrors,
    DetailAsText,
    StartExclusive,
    EndExclusive,
    NaiveDateAccepted,
    V1DropsABatch,
    V1DiffersInAField,
    JsonBodyAccepted,
    WrongSecretAccepted,
    TokenNotChecked,
    SometimesUnavailable,
    AlwaysUnavailable,
    UnavailableWithoutDetail,
    SteersTheTerminal,
    FallsSilent,
    OffsetRefused,
    GzipBomb,
    WrongOrder,
}
