import type { UpdateMode as EngineMode } from '@millrace/engine/value/documents';
import { isUtf8 } from 'node:buffer';
import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import { DataEncoding, UpdateMode } from '@millrace/contract/db';
import { isTooDeepJson, jsonErrorReason, maxJsonDepth } from '@millrace/kit/http';
import { refuse } from '@millrace/engine/value/refusal';

/** A refusal that names the invalid field. */
export function badField(field: string, problem: string): Error {
  const end = problem.endsWith('?') ? '' : '.';
  return refuse('BAD_REQUEST', `${field} ${problem}${end}`, undefined, {
    errors: [{ pointer: field, message: problem }],
  });
}

export function timestamp(time: number): Timestamp {
  const seconds = Math.floor(time / 1000);
  return {
    $typeName: 'google.protobuf.Timestamp',
    seconds: BigInt(seconds),
    nanos: Math.round((time - seconds * 1000) * 1e6),
  };
}

export function duration(lengthMs: number): Duration {
  const seconds = Math.floor(lengthMs / 1000);
  return {
    $typeName: 'google.protobuf.Duration',
    seconds: BigInt(seconds),
    nanos: Math.round((lengthMs - seconds * 1000) * 1e6),
  };
}

/** Milliseconds; undefined when unset. */
export function durationMs(value: Duration | undefined, field: string): number | undefined {
  if (value === undefined) return undefined;
  const lengthMs = Number(value.seconds) * 1000 + value.nanos / 1e6;
  if (lengthMs < 0) throw badField(field, 'must be a duration of 0 or more');
  return lengthMs;
}

/** A commit or revision number, at most 2^53. */
export function wholeNumber(value: bigint, field: string): number {
  if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw badField(field, 'is larger than any number this database assigns');
}

/** Whether bodies are sent as JSON bytes. */
export function wantsJson(encoding: DataEncoding): boolean {
  if (encoding === DataEncoding.JSON) return true;
  if (encoding === DataEncoding.STRUCT || encoding === DataEncoding.UNSPECIFIED) return false;
  throw badField('encoding', 'must be DATA_ENCODING_STRUCT or DATA_ENCODING_JSON');
}

export function engineMode(mode: UpdateMode): EngineMode {
  if (mode === UpdateMode.MERGE) return 'merge';
  if (mode === UpdateMode.REPLACE || mode === UpdateMode.UNSPECIFIED) return 'replace';
  throw badField('mode', 'must be UPDATE_MODE_REPLACE or UPDATE_MODE_MERGE');
}

// Shorter bodies are cheap to parse at any depth; the engine checks their depth.
const shortBytes = 8 * 1024;

/** Parses JSON; `fail` creates the error from the problem. */
export function parseJson(bytes: Uint8Array, fail: (problem: string) => Error): unknown {
  if (!isUtf8(bytes)) throw fail('is not UTF-8');
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length > shortBytes && isTooDeepJson(buffer)) {
    throw fail(`is nested more than ${maxJsonDepth} levels deep`);
  }
  const text = buffer.toString('utf8');
  try {
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw fail(`is not valid JSON: ${jsonErrorReason(error)}`);
  }
}
