import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import { bannerFor, eventsFor } from './banner.js';
import { parts, serverPart } from './parts.js';
import { startParts } from './supervisor.js';

const SERVER = `
import { createServer } from 'node:http';
export async function start({ dataDir }) {
  const server = createServer((_, answer) => answer.end(dataDir));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    listeners: [{ listener: 'http', url: 'http://127.0.0.1:' + server.address().port }],
    ended: new Promise(() => undefined),
    stop: () => new Promise((done) => { server.close(done); server.closeAllConnections(); }),
  };
}
`;

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ctl-parts-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('a package that exports start() becomes a part: it serves, is announced, and stops', async () => {
  const file = join(folder, 'serve.mjs');
  await writeFile(file, SERVER);
  const part = serverPart('mill', 'mill', file, []);
  expect(await part.available()).toBe(true);

  const supervised = await startParts([part], { dataDir: '/some/where' });
  const url = supervised.running.get(part)?.listeners[0]?.url ?? '';
  expect(await (await fetch(url)).text()).toBe('/some/where');
  expect(bannerFor(supervised, '/some/where', { columns: 80, paint: plain })).toContain(url);
  expect(
    eventsFor(supervised)
      .split('\n')
      .slice(0, 2)
      .map((line) => JSON.parse(line)),
  ).toEqual([{ event: 'listening', component: 'mill', listener: 'http', url }, { event: 'ready' }]);
  await supervised.runUntil(Promise.resolve());
  await expect(fetch(url)).rejects.toThrow('fetch failed');
});

test('a package that is not there, or does not export the server, is not available', async () => {
  expect(await serverPart('x', 'x', '@millrace/no-such-package/serve', []).available()).toBe(false);
  expect(await serverPart('x', 'x', '@millrace/kit/serve', []).available()).toBe(false);
});

test('a module without start() is refused by name', async () => {
  const file = join(folder, 'idle.mjs');
  await writeFile(file, 'export const nothing = 0;');
  const part = serverPart('idle', 'idle', file, []);
  await expect(part.start({ dataDir: '' })).rejects.toThrow('exports no start()');
});

test('the three parts stand on the ports of the documentation', () => {
  const ports = parts.flatMap(({ name, addresses }) =>
    addresses.map(({ listener, port }) => `${name} ${listener} ${port}`),
  );
  expect(ports).toEqual(['db grpc 5433', 'db http 8080', 'queue http 8081', 'daemon http 8765']);
});
