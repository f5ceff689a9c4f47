import type { OutboundResponse } from '@millrace/kit/outbound';

/** The largest result that is stored with a task, in bytes of JSON. */
export const maxResultBytes = 65_536;

/** The result of a callback. */
export interface StoredResult {
  /** JSON text. */
  result?: string;
  resultDropped?: true;
}

const noResult: StoredResult = {};

/** The result in the JSON body of an answer; a body of another type has none. */
export function resultOfAnswer(answer: OutboundResponse): StoredResult {
  const { body, headers, truncated } = answer;
  if (body.length === 0 || !isJson(headers['content-type'])) return noResult;
  if (truncated) return { resultDropped: true };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    const result = JSON.stringify(JSON.parse(text));
    return Buffer.byteLength(result) > maxResultBytes ? { resultDropped: true } : { result };
  } catch {
    // Not JSON after all.
    return noResult;
  }
}

/** An answer without a type may be JSON too. */
function isJson(type: string | string[] | undefined): boolean {
  if (type === undefined) return true;
  const [first] = [type].flat();
  return /^application\/(?:[\w.+-]+\+)?json(?:\s*;|\s*$)/i.test(first ?? '');
}
