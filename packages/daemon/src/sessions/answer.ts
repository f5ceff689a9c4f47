import { Refusal } from '@millrace/kit/errors';
import { invalid } from '../core/api.js';
import type { Sessions } from './port.js';

const outputLines = 1_000;

/** The agent's last answer, or the end of what it printed, in at most `maxBytes` of UTF-8. */
export async function answerOf(
  sessions: Pick<Sessions, 'lastAnswer' | 'output'>,
  id: string,
  maxBytes: number,
): Promise<string> {
  const answer = tailOf((await sessions.lastAnswer(id)) ?? '', maxBytes);
  if (answer !== '') return answer;
  const { lines } = await sessions.output(id, { limit: outputLines });
  return tailOf(lines.join('\n'), maxBytes);
}

/** Stops a session; one that was deleted is stopped already. */
export async function stopSession(sessions: Pick<Sessions, 'stop'>, id: string): Promise<void> {
  try {
    await sessions.stop(id);
  } catch (error) {
    if (!(error instanceof Refusal && error.code === 'SESSION_NOT_FOUND')) throw error;
  }
}

/** Control characters. A terminal takes them for keys, which could end a paste, or its agent. */
const keys = /[^\P{Cc}\n\r\t]/gu;

/** Refuses a text that is typed into a terminal and holds keys. */
export function checkTyped(field: string, text: string): void {
  if (text.search(keys) === -1) return;
  const why = 'which a terminal takes for keys; only line breaks and tabs can be typed';
  throw invalid(field, `holds control characters, ${why}`);
}

const encoder = new TextEncoder();

/** The end of a text in at most `maxBytes` of UTF-8, from the start of a line if possible. */
export function tailOf(text: string, maxBytes: number): string {
  const clean = text.trim().toWellFormed().replaceAll(keys, '\u{fffd}');
  const bytes = encoder.encode(clean);
  if (bytes.length <= maxBytes) return clean;
  let from = bytes.length - maxBytes;
  // Do not split a character.
  while (from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from++;
  const tail = new TextDecoder().decode(bytes.subarray(from));
  const line = tail.indexOf('\n');
  // Keep a partial first line that is most of the text.
  return line === -1 || line > tail.length / 2 ? tail : tail.slice(line + 1);
}
