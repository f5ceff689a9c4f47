import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { arch } from 'node:os';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@millrace/db/client';
import { freePort, startProxy } from './proxy.mjs';

const ctl = fileURLToPath(new URL('../../../bin/ctl', import.meta.url));

/** A child process that can be paused, killed and started again. */
class Process {
  #child;
  #ended = Promise.resolve();
  output = '';

  constructor(command, args, env) {
    Object.assign(this, { command, args, env });
  }

  start() {
    const child = spawn(this.command, this.args, {
      env: { ...process.env, NODE_OPTIONS: '', ...this.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.on('data', (bytes) => (this.output += bytes));
    this.#ended = new Promise((resolve) => child.on('close', resolve));
    this.#child = child;
  }

  signal(name) {
    this.#child?.kill(name);
  }

  async kill() {
    this.signal('SIGCONT');
    this.signal('SIGKILL');
    await this.#ended;
    this.#child = undefined;
  }
}

/** A real etcd of three members. */
export async function startEtcd(directory) {
  const ports = [];
  for (let i = 0; i < 3; i++) ports.push([await freePort(), await freePort()]);
  const url = (port) => `http://127.0.0.1:${port}`;
  const all = ports.map(([, peer], i) => `e${i}=${url(peer)}`).join(',');
  const members = ports.map(([client, peer], i) => {
    const member = new Process(
      'etcd',
      [
        `--name=e${i}`,
        `--data-dir=${join(directory, `etcd-${i}`)}`,
        `--listen-client-urls=${url(client)}`,
        `--advertise-client-urls=${url(client)}`,
        `--listen-peer-urls=${url(peer)}`,
        `--initial-advertise-peer-urls=${url(peer)}`,
        `--initial-cluster=${all}`,
        '--log-level=error',
      ],
      { ETCD_UNSUPPORTED_ARCH: arch() },
    );
    member.start();
    return member;
  });
  for (const [client] of ports) await answers(`${url(client)}/v3/kv/range`);
  return { members, ports: ports.map(([client]) => client) };
}

async function answers(url) {
  for (let tries = 0; tries < 300; tries++) {
    const body = JSON.stringify({ key: 'AA==' });
    const signal = AbortSignal.timeout(1_000);
    const answer = await fetch(url, { method: 'POST', body, signal }).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(100);
  }
  throw new Error('etcd did not start');
}

/** A database node behind a proxy, with a proxy of its own to each member of etcd. */
export async function startNode(index, { directory, etcdPorts, minAcks, ttlMs }) {
  const port = await freePort();
  const inbound = await startProxy(port);
  const toEtcd = [];
  for (const etcdPort of etcdPorts) toEtcd.push(await startProxy(etcdPort));
  const hosts = toEtcd.map((proxy) => `127.0.0.1:${proxy.port}`).join(',');
  const url = `grpc://127.0.0.1:${inbound.port}`;
  const node = new Process(
    process.execPath,
    [
      ctl,
      'db',
      'serve',
      `--data=${join(directory, `node-${index}`)}`,
      `--grpc=127.0.0.1:${port}`,
      '--http=127.0.0.1:0',
      '--shed-target-ms=0',
      '--auth=none',
      `--cluster=etcd://${hosts}/failover`,
      `--cluster-ttl=${ttlMs / 1000}s`,
      `--min-acks=${minAcks}`,
      `--advertise=${url}`,
    ],
    {},
  );
  node.start();
  const client = await connect(url, { timeoutMs: 3_000, retry: false });
  // Not through the proxy, to see the state of a node that is cut off.
  const inside = await connect(`grpc://127.0.0.1:${port}`, { timeoutMs: 2_000, retry: false });
  return {
    index,
    url,
    client,
    process: node,
    status: () => inside.status(),
    inbound,
    toEtcd,
    proxies: [inbound, ...toEtcd],
    async close() {
      await client.close();
      await inside.close();
      await node.kill();
      for (const proxy of [inbound, ...toEtcd]) proxy.close();
    },
  };
}

/** The epochs that a node has led, from its log. */
export function promotionsOf(node) {
  return node.process.output.split('\n').flatMap((line) => {
    if (!line.includes('promoted to leader')) return [];
    return [{ node: node.index, epoch: JSON.parse(line).epoch }];
  });
}
