import { lookup } from 'node:dns/promises';
import type { Server } from 'node:net';
import { addressText, type Address } from '@millrace/kit/config';
import { listenError } from '@millrace/kit/http';

/** Starts to listen; answers the address with the real port, also when 0 was asked for. */
export async function listenAt(server: Server, address: Address, flag: string): Promise<Address> {
  const { host, port } = address;
  try {
    const resolved = (await lookup(host)).address;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: resolved, port }, () => {
        server.removeListener('error', reject);
        resolve();
      });
    });
  } catch (error) {
    throw listenError(error, addressText(address), flag);
  }
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server has no port');
  return { host, port: bound.port };
}

/** Stops accepting. Resolves when the last connection is closed. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // It is not listening any more: all the better.
    server.close(() => resolve());
  });
}
