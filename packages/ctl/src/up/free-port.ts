import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { Address } from '@millrace/kit/config';

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
