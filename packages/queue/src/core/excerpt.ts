const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The start of a text that fits into so many bytes of UTF-8, cut between two characters. */
export function cutText(text: string, maxBytes: number): string {
  const clean = storable(text);
  // No code unit takes more than three bytes.
  if (clean.length * 3 <= maxBytes) return clean;
  const { read } = encoder.encodeInto(clean, new Uint8Array(maxBytes));
  return clean.slice(0, read);
}

/** The start of what came over the wire as text, whatever it was: at most so many bytes. */
export function textExcerpt(bytes: Uint8Array, maxBytes: number): string {
  if (bytes.length === 0) return '';
  if (bytes.length <= maxBytes) return cutText(decoder.decode(bytes), maxBytes);
  // Read as a stream that goes on, a character that the cut has split is left out.
  const start = new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
  return cutText(start, maxBytes);
}

// Half a surrogate pair is no text, and some databases refuse U+0000.
function storable(text: string): string {
  if (text.isWellFormed() && !text.includes('\0')) return text;
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}
