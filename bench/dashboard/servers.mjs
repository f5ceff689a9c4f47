import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startProgram, stop } from '../shared/processes.mjs';

const flags = ['listen', 'queue-listen', 'queue-grpc', 'metrics-listen', 'db-grpc', 'db-http'];

/** `ctl up` with a pull queue `work`, dead tasks in it, and a collection `people`. */
export async function startServers(root, rowCount) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const data = join(home, 'data');
  const args = ['up', '--json', '--no-auth', '--data', data];
  const child = startProgram(
    process.execPath,
    [join(root, 'bin', 'ctl'), ...args, ...flags.flatMap((name) => [`--${name}`, '127.0.0.1:0'])],
    { env: { PATH: process.env.PATH, HOME: home }, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const finish = async () => {
    await stop(child);
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const urls = await ready(child);
    const authorization = `Bearer ${readFileSync(join(data, 'queue.token'), 'utf8').trim()}`;
    await fillQueue((method, path, body) => {
      return send(urls.queue + path, method, body, { authorization });
    }, rowCount);
    await fillDatabase((method, path, body) => send(urls.db + path, method, body, {}), rowCount);
    return { url: urls.daemon, stop: finish };
  } catch (error) {
    await finish();
    throw error;
  }
}

async function ready(child) {
  const urls = {};
  for await (const line of createInterface({ input: child.stdout })) {
    const { event, component, listener, url } = JSON.parse(line);
    if (event === 'listening' && listener === 'http') urls[component] = url;
    if (event === 'ready') {
      child.stdout.resume();
      return urls;
    }
  }
  throw new Error('ctl up exited before it was ready');
}

async function fillQueue(queue, rowCount) {
  await queue('PUT', '/v1/admin/queues/work/config', { callback: { protocol: 'pull' } });
  for (let first = 0; first < rowCount; first += 1_000) {
    const items = Array.from({ length: Math.min(1_000, rowCount - first) }, (_, index) => ({
      handler_ref: (first + index) % 10 === 0 ? 'mail.digest' : 'mail.send',
      payload: Buffer.from(JSON.stringify({ letter: first + index })).toString('base64'),
      payload_content_type: 'application/json',
    }));
    await queue('POST', '/v1/queues/work/tasks:batch', items);
  }
}

const cities = ['Berlin', 'Oslo', 'Paris', 'Rome'];

async function fillDatabase(database, rowCount) {
  for (let first = 0; first < rowCount; first += 200) {
    const records = Array.from({ length: Math.min(200, rowCount - first) }, (_, index) => {
      const number = first + index;
      const data = {
        name: `Person ${number}`,
        age: (number * 7 + 41) % 90,
        city: cities[number % 4],
      };
      return database('POST', '/v1/people/records', { data });
    });
    await Promise.all(records);
  }
}

async function send(url, method, body, headers) {
  const request = {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const response = await fetch(url, request);
  if (!response.ok)
    throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
}
