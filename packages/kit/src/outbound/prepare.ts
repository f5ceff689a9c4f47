import { createRequire } from 'node:module';
import { Duplex } from 'node:stream';
import type { Client } from 'undici';

const NewClient = createRequire(import.meta.url)('undici/lib/dispatcher/client') as typeof Client;

/**
 * Does what the first connection would do: undici compiles its parser of answers when it first has
 * a socket, and that takes as long as hundreds of requests. No network is touched.
 */
export async function prepareOutbound(): Promise<void> {
  const nowhere = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const client = new NewClient('http://nowhere.invalid', {
    connect: (_, opened) => opened(null, nowhere as never),
  });
  try {
    await new Promise<void>((resolve, reject) => {
      client.on('connect', () => resolve());
      const handler = {
        onRequestStart: () => undefined,
        onResponseError: (_: unknown, error: Error) => reject(error),
      };
      client.dispatch({ path: '/', method: 'GET' }, handler);
    });
  } finally {
    await client.destroy();
  }
}
