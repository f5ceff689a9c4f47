import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { SharedBuffer, type ByteSource } from './socket.js';

async function listening() {
  const buffer = new SharedBuffer();
  const sources: ByteSource[] = [];
  const received: string[] = [];
  const server = createServer((accepted) => {
    const source = buffer.read(accepted);
    const at = sources.push(source) - 1;
    received.push('');
    source.take = (bytes, end) => (received[at] += bytes.toString('latin1', 0, end));
    source.socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const dial = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { server, sources, received, dial };
}

test('sockets that share a buffer each receive their own bytes', async () => {
  const { received, dial } = await listening();
  const clients = [await dial(), await dial()];
  const texts = ['a', 'b'].map((letter) => letter.repeat(300_000));
  clients.forEach((client, i) => client.write(texts[i]!));
  await expect.poll(() => received.map((text) => text.length)).toEqual([300_000, 300_000]);
  expect([...received].sort()).toEqual(texts);
});

test('a socket that shares a buffer can be written to and closed', async () => {
  const { sources, dial } = await listening();
  const client = await dial();
  await expect.poll(() => sources.length).toBe(1);
  const { socket } = sources[0]!;
  expect(socket.remotePort).toBe(client.localPort);
  socket.end('good bye');
  const [said] = (await once(client, 'data')) as [Buffer];
  expect(said.toString()).toBe('good bye');
  await once(client, 'close');
});

test.each(['end', 'resetAndDestroy'] as const)(
  'the server that accepted it knows when it is gone, by %s',
  async (how) => {
    const { server, sources, dial } = await listening();
    const client = await dial();
    await expect.poll(() => sources.length).toBe(1);
    const closed = once(server, 'close');
    server.close();
    client.resume()[how]();
    await closed;
    expect(sources[0]!.socket.destroyed).toBe(true);
  },
);
