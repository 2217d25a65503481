//! A Parquet file whose pages have a limited size, and whose metadata is read in limited time. A page of some KB can
//! claim, and contain, gigabytes of zeros.

use std::fs::File;
use std::io::{self, BufReader, Read};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use memchr::memmem;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::thrift::{is_safe, read_page_header};

/// Most writers make pages of 1 MiB; DuckDB makes them of up to 100 MB.
const PAGE_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Some ten MiB in memory. Most writers stop at a page of 1 MiB.
const DICTIONARY_VALUES_MAX: u64 = 1024 * 1024;
/// The end of the file: the length of its metadata, and a mark.
const FOOTER_BYTES: u64 = 8;
/// The start of gzip data.
const GZIP_MAGIC: &[u8] = &[0x1F, 0x8B, 8];

#[derive(Debug, thiserror::Error)]
#[error("a larger page")]
pub(super) struct PageTooLarge;

pub(super) struct LimitedFile(pub(super) File);

impl Length for LimitedFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for LimitedFile {
    type T = BufReader<File>;

    /// The library calls this at the start of every page, and for the footer.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if start.saturating_add(FOOTER_BYTES) != self.len() {
            match read_page_header(self.0.get_read(start)?) {
                Some(header) if header.bytes > PAGE_BYTES_MAX => {
                    return Err(ParquetError::External(Box::new(PageTooLarge)));
                }
                // The library allocates memory for the values before it reads them.
                Some(header) if header.dictionary_values > DICTIONARY_VALUES_MAX.min(header.bytes) => {
                    return Err(ParquetError::General("the dictionary claims too many values".into()));
                }
                Some(_) => {}
                None => return Err(ParquetError::General("invalid page header".into())),
            }
        }
        self.0.get_read(start)
    }

    /// The library calls this for the content of a page, and for the metadata at the end of the file.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if length as u64 > self.len() {
            return Err(ParquetError::EOF(format!("{length} bytes at {start}")));
        }
        let bytes = self.0.get_bytes(start, length)?;
        let is_metadata = start.saturating_add(length as u64 + FOOTER_BYTES) == self.len();
        if is_metadata && !is_safe(&*bytes) {
            Err(ParquetError::General("invalid metadata".into()))
        } else if is_gzip_too_large(&bytes) {
            Err(ParquetError::External(Box::new(PageTooLarge)))
        } else {
            Ok(bytes)
        }
    }
}

/// Whether there is gzip data that is too large. The library ignores the claimed size for gzip only.
fn is_gzip_too_large(bytes: &[u8]) -> bool {
    // In a page of version 2, uncompressed bytes precede it.
    memmem::find_iter(bytes, GZIP_MAGIC).any(|start| {
        let mut content = MultiGzDecoder::new(&bytes[start..]).take(PAGE_BYTES_MAX + 1);
        // An error here is one for the library, too.
        io::copy(&mut content, &mut io::sink()).is_ok_and(|length| length > PAGE_BYTES_MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn file(bytes: &[u8]) -> LimitedFile {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        LimitedFile(file)
    }

    #[test]
    fn a_page_header_that_claims_too_much_or_cannot_be_read_is_rejected() {
        let small = [0x15, 0, 0x15, 2, 0x15, 2, 0, 0, 0, 0];
        let huge = [0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x02, 0x15, 2, 0];
        let dictionary = [0x15, 4, 0x15, 2, 0x15, 2, 0x4C, 0x15, 4, 0, 0];
        let booleans = [0x15, 0, 0x15, 2, 0x15, 2, 0x19, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0];
        assert!(file(&small).get_read(0).is_ok());
        let error = file(&huge).get_read(0).unwrap_err();
        assert!(matches!(error, ParquetError::External(cause) if cause.is::<PageTooLarge>()));
        assert!(file(&dictionary).get_read(0).is_err());
        assert!(file(&booleans).get_read(0).is_err());
    }

    #[test]
    fn gzip_data_that_is_too_large_is_rejected() {
        for (mib, is_rejected) in [(1, false), (129, true)] {
            let mut gzip = GzEncoder::new(b"levels".to_vec(), Compression::fast());
            for _ in 0..mib {
                gzip.write_all(&vec![0; 1024 * 1024]).unwrap();
            }
            let bytes = gzip.finish().unwrap();
            assert_eq!(file(&bytes).get_bytes(0, bytes.len()).is_err(), is_rejected, "{mib} MiB");
        }
    }
}
