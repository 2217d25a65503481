// A ZIP archive, deflated by the browser.

interface Entry {
  name: string;
  text: Iterable<string>;
}

/** Files of less than 4 GB in all. */
export async function zip(entries: readonly Entry[], type: string): Promise<Blob> {
  const parts: BlobPart[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const { name, text } of entries) {
    const { checksum, size, deflated } = await deflate(text);
    const path = new TextEncoder().encode(name);
    const header = fields(
      ...[u16(20), u16(UTF8), u16(DEFLATED), u16(0), u16(FIRST_DATE), u32(checksum), u32(deflated.size), u32(size)],
      ...[u16(path.length), u16(0)],
    );
    const start = fields(u32(0x04034b50), header, path);
    parts.push(start, deflated);
    directory.push(
      fields(u32(0x02014b50), u16(20), header, u16(0), u16(0), u16(0), u32(0), u32(offset), path),
    );
    offset += start.length + deflated.size;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const count = u16(entries.length);
  const end = fields(u32(0x06054b50), u16(0), u16(0), count, count, u32(size), u32(offset), u16(0));
  return new Blob([...parts, ...directory, end], { type });
}

const UTF8 = 0x0800;
const DEFLATED = 8;
// 1980-01-01, so that the same content has the same bytes.
const FIRST_DATE = 0x21;

async function deflate(text: Iterable<string>): Promise<{ checksum: number; size: number; deflated: Blob }> {
  const encoder = new TextEncoder();
  const stream = new CompressionStream('deflate-raw');
  const deflated = new Response(stream.readable).blob();
  const writer = stream.writable.getWriter();
  let checksum = -1;
  let size = 0;
  for (const part of text) {
    const bytes = encoder.encode(part);
    checksum = crc32(checksum, bytes);
    size += bytes.length;
    await writer.write(bytes);
  }
  await writer.close();
  return { checksum: ~checksum >>> 0, size, deflated: await deflated };
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

function crc32(crc: number, bytes: Uint8Array): number {
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 255]! ^ (crc >>> 8);
  return crc;
}

function u16(value: number): Uint8Array {
  return Uint8Array.of(value, value >>> 8);
}

function u32(value: number): Uint8Array {
  return Uint8Array.of(value, value >>> 8, value >>> 16, value >>> 24);
}

function fields(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
