import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { Address } from '@millrace/kit/config';
import { systemCode } from '@millrace/kit/errors';

/** The address with a free port, if its port is 0. */
export async function withPort(address: Address): Promise<Address> {
  if (address.port !== 0) return address;
  const server = createServer();
  server.listen(0, address.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return { host: address.host, port };
}

/** The address, or the same with port 0 if its port is in use. */
export async function orAnyPort(address: Address): Promise<Address> {
  const server = createServer();
  server.listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (systemCode(error) !== 'EADDRINUSE') throw error;
    return { host: address.host, port: 0 };
  }
  server.close();
  await once(server, 'close');
  return address;
}
