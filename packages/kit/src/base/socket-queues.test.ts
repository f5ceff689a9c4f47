import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { SocketQueues } from './socket-queues.js';

const title = '  sl  local_address rem_address   st tx_queue rx_queue\n';
const ends = (localAddress: string, remoteAddress: string) =>
  ({ localAddress, localPort: 8080, remoteAddress, remotePort: 50_000 }) as Socket;

test.each([
  ['IPv4', '127.0.0.1', '0100007F:1F90 0100007F:C350 01 00000400:00000000'],
  ['IPv4 in IPv6', '::ffff:127.0.0.1', '0100007F:1F90 0100007F:C350 01 00000400:00000000'],
  [
    'IPv6',
    '2001:db8::1',
    'B80D0120000000000000000001000000:1F90 B80D0120000000000000000001000000:C350 01 00000400:00000000',
  ],
])('socket queues: %s', (_name, address, line) => {
  const queues = new SocketQueues([`${title}   0: ${line}\n`]);
  expect(queues.heldFor(ends(address, address))).toBe(0x400);
  expect(queues.heldFor(ends(address, '10.0.0.1'))).toBe(0);
});

test('socket queues: what a peer on this machine has not read counts', () => {
  const queues = new SocketQueues([
    `${title}0: 0100007F:1F90 0100007F:C350 01 00000400:00000000\n`,
    `${title}0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 00000000:00000100\n`,
  ]);
  expect(queues.heldFor(ends('127.0.0.1', '127.0.0.1'))).toBe(0x500);
});

test.runIf(process.platform === 'linux')('socket queues: of a real connection', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [[accepted]] = (await Promise.all([
    once(server, 'connection'),
    once(client, 'connect'),
  ])) as [[Socket], unknown];
  accepted.write(Buffer.alloc(2_000_000));
  const held = async () => (await SocketQueues.read()).heldFor(accepted);
  await expect.poll(held).toBeGreaterThan(100_000);
  client.resume();
  await expect.poll(held).toBe(0);
  client.destroy();
  accepted.destroy();
  server.close();
});
