/** The servers under test, each a process of its own on loopback, all on the same disk. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, logFile, startProgram, stop } from '../shared/processes.mjs';

/**
 * `ctl db serve` with default settings, but without keys: its peers are called without any.
 * `program`: another module that runs the same command, with a message channel.
 */
export async function startMillrace(root, home, flags = [], program) {
  const directory = join(home, ['millrace', ...flags].join(''));
  mkdirSync(directory, { recursive: true });
  const config = join(home, 'db.yaml');
  writeFileSync(config, 'collections:\n  people:\n    indexes:\n      - {fields: [city]}\n');
  const args = ['--data', directory, '--config', config, '--grpc', '127.0.0.1:0', ...flags];
  const server = startProgram(
    process.execPath,
    [program?.file ?? join(root, 'bin', 'ctl'), ...(program?.args ?? [])]
      .concat(['db', 'serve', '--no-auth', ...args])
      .concat(['--http', '127.0.0.1:0']),
    { stdio: ['ignore', 'pipe', logFile(home, 'db-server'), ...(program ? ['ipc'] : [])] },
  );
  const urls = {};
  for await (const line of createInterface({ input: server.stdout })) {
    const { event, listener, url } = JSON.parse(line);
    if (event === 'listening') urls[listener] = url;
    if (urls.grpc && urls.http) break;
  }
  if (!urls.http)
    throw new Error(`ctl db serve ended before it was ready: see ${home}/db-server.log`);
  server.stdout.resume();
  return {
    grpc: urls.grpc.replace(/^grpc:/, 'http:'),
    http: urls.http,
    pid: server.pid,
    child: server,
    stop: () => stop(server),
  };
}

export async function startEtcd(home) {
  const [client, peer] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const flags = {
    'data-dir': join(home, 'etcd'),
    'listen-client-urls': url,
    'advertise-client-urls': url,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
    'log-level': 'error',
    'quota-backend-bytes': String(8 * 2 ** 30),
    'max-request-bytes': String(64 * 2 ** 20),
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const server = startProgram('etcd', args, { stdio: 'ignore' });
  for (let tries = 0; tries < 100; tries++) {
    const ready = await fetch(`${url}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return { grpc: url, pid: server.pid, stop: () => stop(server) };
    await sleep(100);
  }
  await stop(server);
  throw new Error('etcd did not become ready within 10 s');
}
