import { join } from 'node:path';
import { dataDirectory } from '@millrace/kit/config';
import { isUlid } from '@millrace/kit/ulid';
import type { World } from '@millrace/kit/world';
import { persistentText } from './persistent-text.js';

export interface ServerIdentity {
  /** Identifies this server in leases and attempts. */
  nodeId: string;
  /** Signs cursors, so that they stay valid after a restart and cannot be forged. */
  cursorKey: Uint8Array;
}

const keyLength = 32;

/** Files of the server itself, in its own directory beside the store. */
export function identityFiles(data: string, { clock, random }: World): ServerIdentity {
  const directory = dataDirectory(join(data, 'queue-server'));
  const nodeId = persistentText({
    file: join(directory, 'NODE'),
    what: 'the id of a server',
    isGood: isUlid,
    make: () => random.ulid(clock.now()),
  });
  const key = persistentText({
    file: join(directory, 'cursor.key'),
    what: `the ${keyLength} bytes, in hex, that cursors are signed with`,
    isGood: (text) => /^[0-9a-f]{64}$/.test(text),
    make: () => Buffer.from(random.bytes(keyLength)).toString('hex'),
  });
  return { nodeId, cursorKey: Buffer.from(key, 'hex') };
}
