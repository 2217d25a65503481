//! The checksum in the Parquet files that we write. The library does not write checksums of pages, and without one a
//! damaged page can be read as other values.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};

use crc32fast::Hasher;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::schema::printer::print_schema;
use parquet::schema::types::Type;

/// In the file's metadata: the length of the data, and a CRC-32 of the data and the schema.
const KEY: &str = "batchscan.crc32";

/// Computes the checksum of what is written.
pub(crate) struct ChecksumWriter<W> {
    inner: W,
    length: u64,
    crc: Hasher,
}

impl<W> ChecksumWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, length: 0, crc: Hasher::new() }
    }

    /// The checksum of everything so far, and of the schema.
    pub(crate) fn checksum(&self, schema: &Type) -> KeyValue {
        KeyValue::new(KEY.to_owned(), text(self.length, self.crc.clone(), schema))
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Whether a file has the checksum in its metadata. A file of another program has none.
pub(crate) fn is_valid(mut file: &File, metadata: &ParquetMetaData) -> io::Result<bool> {
    let metadata = metadata.file_metadata();
    let pairs = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let Some(pair) = pairs.iter().find(|pair| pair.key == KEY) else { return Ok(true) };
    let expected = pair.value.as_deref().unwrap_or_default();
    let length = expected.split(':').next().and_then(|length| length.parse().ok()).unwrap_or(0);
    file.rewind()?;
    let (mut data, mut crc) = (BufReader::new(file.take(length)), Hasher::new());
    loop {
        let bytes = data.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        crc.update(bytes);
        let count = bytes.len();
        data.consume(count);
    }
    Ok(text(length, crc, metadata.schema()) == expected)
}

fn text(length: u64, mut crc: Hasher, schema: &Type) -> String {
    let mut printed = Vec::new();
    print_schema(&mut printed, schema);
    crc.update(&printed);
    format!("{length}:{:08x}", crc.finalize())
}
