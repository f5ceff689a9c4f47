import type { OutboundResponse } from '@millrace/kit/outbound';
import type { Suspension } from './flow.js';

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

const suspendType = /^application\/vnd\.millrace\.suspend\+json(?:\s*;|\s*$)/i;

/** The handler did not finish: its task waits as the body says. */
export function isSuspension({ status, headers }: OutboundResponse): boolean {
  const type = headers['content-type'];
  const first = Array.isArray(type) ? type[0] : type;
  return status === 200 && first !== undefined && suspendType.test(first);
}

/** What the task waits for, or what is wrong with the body. */
export function suspensionOfAnswer({ body, truncated }: OutboundResponse): Suspension | string {
  if (truncated) return 'its body has more than 64 KiB';
  try {
    const given: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return suspensionOf(given);
  } catch {
    return 'its body is not JSON';
  }
}

/** Checks a suspension that did not come through the API. */
export function suspensionOf(given: unknown): Suspension | string {
  if (typeof given !== 'object' || given === null) return 'its body is not an object';
  const { until, signals, tasks, mode = 'any' } = given as Record<string, unknown>;
  const isList = (list: unknown): list is string[] =>
    Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'string');
  if (until === undefined && signals === undefined && tasks === undefined) {
    return 'it has none of until, signals and tasks';
  }
  const time = typeof until === 'string' ? Date.parse(until) : undefined;
  if (until !== undefined && !Number.isFinite(time)) return 'its until is not a time';
  if (signals !== undefined && !isList(signals)) return 'its signals are not a list of names';
  if (tasks !== undefined && !isList(tasks)) return 'its tasks are not a list of ids';
  if (mode !== 'any' && mode !== 'all') return 'its mode is neither any nor all';
  return { until: time, signals, tasks: tasks?.map((id) => id.toUpperCase()), mode };
}

/** An answer without a type may be JSON too. */
function isJson(type: string | string[] | undefined): boolean {
  if (type === undefined) return true;
  const [first] = [type].flat();
  return /^application\/(?:[\w.+-]+\+)?json(?:\s*;|\s*$)/i.test(first ?? '');
}
