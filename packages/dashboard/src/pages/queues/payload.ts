/** The UTF-8 bytes of a text in base64. */
export function toBase64(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export interface ShownPayload {
  /** The text, or nothing when the bytes are no text. */
  text: string | undefined;
  bytes: number;
  isCut: boolean;
}

// A page that draws a megabyte of text stands still.
const mostShown = 20_000;

/** A payload as a person can read it: JSON laid out, other text as it is. */
export function shownPayload(base64: string): ShownPayload {
  const binary = atob(base64);
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { text: undefined, bytes: bytes.length, isCut: false };
  }
  const laidOut = bytes.length <= 4 * mostShown ? layOut(text) : text;
  return {
    text: laidOut.slice(0, mostShown),
    bytes: bytes.length,
    isCut: laidOut.length > mostShown,
  };
}

function layOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
