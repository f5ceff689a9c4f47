import type { IncomingHttpHeaders } from 'node:http';
import type { ReadBody } from './body-reader.js';
import type { BoundOperation } from './bound.js';
import type { UntypedOutcome } from './handlers.js';

/** A request as it came. */
export interface Given {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, unknown>>;
  headers: IncomingHttpHeaders;
  /** Undefined: too many. */
  bytes: Buffer | undefined;
}

/** What a call is told of it once that is checked. */
export interface Told {
  params: unknown;
  query: unknown;
  headers: unknown;
  body: unknown;
}

const nothing: Readonly<Record<string, never>> = Object.freeze({});

/** The last part of the walk: body, query, headers and path, and then the handler. */
export function perform(
  bound: BoundOperation,
  call: Told,
  given: Given,
): UntypedOutcome | Promise<UntypedOutcome> {
  const body = bound.body?.parse(given.bytes, given.headers);
  call.query = bound.query ? bound.query.read(given.query) : nothing;
  call.headers = bound.headers ? bound.headers.read(given.headers) : nothing;
  call.params = bound.path ? bound.path.read(given.params) : nothing;
  call.body = body?.value;
  const checked = bound.handler.before?.(call as never);
  if (checked instanceof Promise) return checked.then(() => handle(bound, call, body));
  return handle(bound, call, body);
}

function handle(bound: BoundOperation, call: Told, body: ReadBody | undefined) {
  if (body && bound.handler.checkBody) bound.body!.verify(body);
  return bound.handler.handle(call as never);
}
