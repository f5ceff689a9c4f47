import { readCursor, writeCursor } from '../../packages/engine/dist/query/page.js';
import { readToken, writeToken } from '../../packages/engine/dist/watch/message.js';
import { Refusal } from '../../packages/kit/dist/base/errors.js';

/* Resume tokens of watches, and cursors of lists: what is taken comes back the same. */

const lineage = '01K9ZQ5A2N4P6R8S0T1V3W5X7Y';
const order = { keys: [{ path: ['a'], isDescending: false }], isDescending: false };
const now = Date.UTC(2026, 0, 1);

export const isExpected = (error) => error instanceof Refusal;

export function run(input) {
  const text = input.toString('latin1');
  attempt(() => {
    const position = readToken(lineage, text);
    if (writeToken(lineage, position) !== text) throw new Error('another token comes back');
  });
  // A token of this lineage with any other content.
  const forged = Buffer.from(writeToken(lineage, { seq: 7, chain: undefined }), 'base64url');
  attempt(() => readToken(lineage, Buffer.concat([forged, input]).toString('base64url')));
  attempt(() => {
    const position = readCursor(text, 'f', order, now);
    if (writeCursor(position, 'f', now) === '') throw new Error('an empty cursor comes back');
  });
  attempt(() => readCursor(input.toString('base64url'), 'f', order, now));
}

function attempt(call) {
  try {
    call();
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}
