import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { orAnyPort } from './bring-up.js';

const host = '127.0.0.1';

test('default port: stays while it is free, and becomes any port when it is in use', async () => {
  const server = createServer().listen(0, host);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await orAnyPort({ host, port })).toEqual({ host, port: 0 });
  server.close();
  await once(server, 'close');
  expect(await orAnyPort({ host, port })).toEqual({ host, port });
  await expect(orAnyPort({ host: '192.0.2.1', port })).rejects.toThrow('EADDRNOTAVAIL');
});
