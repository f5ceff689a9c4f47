/** Encodes a text as UTF-8 in base64. */
export function toBase64(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export interface ShownPayload {
  /** Undefined when the bytes are not UTF-8. */
  text: string | undefined;
  bytes: number;
  isCut: boolean;
}

// A megabyte of text would freeze the page.
const maxChars = 20_000;

/** Decodes a payload for display: JSON is pretty-printed, other text is shown as is. */
export function shownPayload(base64: string): ShownPayload {
  const binary = atob(base64);
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { text: undefined, bytes: bytes.length, isCut: false };
  }
  const formatted = bytes.length <= 4 * maxChars ? prettyPrint(text) : text;
  return {
    text: formatted.slice(0, maxChars),
    bytes: bytes.length,
    isCut: formatted.length > maxChars,
  };
}

function prettyPrint(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
