import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect as connectTcp, type AddressInfo, type Server, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';
import {
  callbackGuard,
  parseAllowlist,
  type Outbound,
  type Resolver,
} from '@millrace/kit/outbound';
import { createOutbound, type Connect, type OutboundOptions } from '../../src/http1/index.js';

const pem = (name: string) =>
  readFileSync(new URL(`../../../kit/test/outbound/self-signed.${name}.pem`, import.meta.url));

/** Valid for hooks.example.test and 127.0.0.1 until 2199. Self-signed. */
export const certificate = { key: pem('key'), cert: pem('cert') };

export interface Loopback {
  port: number;
  /** How many connections were ever opened to it. */
  connections: number;
  /** Those that are open now. */
  open: Set<Socket>;
}

/** An HTTP server on 127.0.0.1 that counts connections. Stops with the test. */
export function startHttp(answer: RequestListener): Promise<Loopback> {
  return watch(createServer(answer));
}

export function startHttps(answer: RequestListener): Promise<Loopback> {
  return watch(createSecureServer(certificate, answer));
}

/** Counts and stops any server. */
export async function watch(server: Server): Promise<Loopback> {
  const loopback: Loopback = { port: 0, connections: 0, open: new Set() };
  server.on('connection', (socket: Socket) => {
    loopback.connections++;
    loopback.open.add(socket);
    // Half of these tests tear connections down on purpose.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => loopback.open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  loopback.port = portOf(server);
  onTestFinished(async () => {
    for (const socket of loopback.open) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return loopback;
}

/** A closed port on 127.0.0.1. */
export async function unusedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * A port on 127.0.0.1 that drops whoever knocks: its listener never accepts and its backlog is
 * full.
 */
export async function blackholePort(): Promise<number> {
  const worker = new Worker(
    `const { createServer } = require('node:net');
     const { parentPort } = require('node:worker_threads');
     const server = createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
     });`,
    { eval: true },
  );
  const port: number = (await once(worker, 'message'))[0];
  const fillers = Array.from({ length: 8 }, () => connectTcp(port, '127.0.0.1'));
  fillers.forEach((filler) => filler.on('error', () => filler.destroy()));
  onTestFinished(async () => {
    fillers.forEach((filler) => filler.destroy());
    await worker.terminate();
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  return port;
}

/** Notes every address that is dialled, then dials it, or another one in its place. */
export function recordingConnect(instead: (address: string) => string = (address) => address) {
  const dialled: string[] = [];
  const sockets: Socket[] = [];
  const connect: Connect = (address, port) => {
    dialled.push(address);
    const socket = connectTcp({ host: instead(address), port });
    sockets.push(socket);
    return socket;
  };
  return { dialled, sockets, connect };
}

/** Answers from a table, and notes what it was asked. An absent name does not exist. */
export function tableResolver(table: Record<string, readonly string[]>) {
  const lookups: string[] = [];
  const resolver: Resolver = (host) => {
    lookups.push(host);
    const answer = table[host];
    if (answer === undefined) return Promise.reject(new Error(`getaddrinfo ENOTFOUND ${host}`));
    return Promise.resolve(answer);
  };
  return { lookups, resolver };
}

/** An outbound that is closed with the test. */
export function openOutbound(options: OutboundOptions): Outbound {
  const outbound = createOutbound(options);
  onTestFinished(() => outbound.close());
  return outbound;
}

/** Lets 127.0.0.0/8 be called under any of these hosts, on any port. */
export function loopbackGuard(...hosts: string[]) {
  const entries = [...hosts, '127.0.0.1'].flatMap((host) =>
    ['http', 'https'].map((scheme) => ({ scheme, host, port: '*', networks: ['127.0.0.0/8'] })),
  );
  return callbackGuard(parseAllowlist(entries));
}

function portOf(server: Server): number {
  // A TCP server that listens has this kind of address.
  return (server.address() as AddressInfo).port;
}
