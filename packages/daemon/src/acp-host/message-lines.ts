import { Transform } from 'node:stream';
import type { HostEvent } from './host-events.js';

/** As long as a line of a transcript may be: a message can contain a whole file. */
export const maxLineBytes = 64 * 1_048_576;
const maxLogLength = 4_000;

/**
 * Passes the messages of an agent on, one per line. Some agents also print banners and warnings to
 * stdout, which become log lines. A line above the limit is dropped, and reported once.
 */
export function messageLines(emit: (event: HostEvent) => void, limit = maxLineBytes): Transform {
  let parts: Buffer[] = [];
  let size = 0;
  let isTooLong = false;
  const add = (part: Buffer) => {
    size += part.length;
    if (!isTooLong && size > limit) {
      isTooLong = true;
      parts = [];
      emit({ type: 'error', text: `a message above ${limit} bytes was dropped` });
    }
    if (!isTooLong) parts.push(part);
  };
  const end = (out: Transform) => {
    const line = Buffer.concat(parts);
    if (!isTooLong) pass(out, line, emit);
    [parts, size, isTooLong] = [[], 0, false];
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        add(chunk.subarray(from, at));
        end(this);
        from = at + 1;
      }
      if (from < chunk.length) add(chunk.subarray(from));
      done();
    },
  });
}

function pass(out: Transform, line: Buffer, emit: (event: HostEvent) => void): void {
  const start = line.findIndex((byte) => byte > 32);
  if (start < 0) return;
  if (line[start] === 0x7b) out.push(Buffer.concat([line, Buffer.from('\n')]));
  else emit({ type: 'log', text: line.toString('utf8', 0, maxLogLength) });
}
