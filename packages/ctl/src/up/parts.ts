import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { programName } from '../base/command-name.js';

/** One of the servers that `ctl up` runs. */
export interface Part {
  /** Name in the listening lines, and the group of its command: db, queue, daemon, connect. */
  readonly name: 'db' | 'queue' | 'daemon' | 'connect';
  /** Name for people. */
  readonly title: string;
  /** Default addresses. */
  readonly addresses: readonly Address[];
  /** Listeners it announces when it is ready. */
  readonly listeners: readonly string[];
  /** Flags of its `serve` that have another name in `ctl up`. */
  readonly flags?: Readonly<Record<string, string>>;
}

export interface Address {
  readonly listener: string;
  readonly port: number;
  readonly url: string;
}

/** The line that a server prints when it is ready. */
export interface Listener {
  readonly listener: string;
  readonly url: string;
}

const db: Part = {
  name: 'db',
  title: 'database',
  addresses: [address('grpc', 5433, 'grpc'), address('http', 8080)],
  listeners: ['grpc', 'http', 'socket'],
  flags: { '--grpc': '--db-grpc', '--http': '--db-http' },
};

export const queueGrpcPort = 8082;

const queue: Part = {
  name: 'queue',
  title: 'queue',
  addresses: [
    address('http', 8081),
    address('metrics', 9464),
    address('grpc', queueGrpcPort, 'grpc'),
  ],
  listeners: ['http', 'metrics', 'grpc'],
  flags: { '--listen': '--queue-listen', '--grpc': '--queue-grpc' },
};

const daemon: Part = {
  name: 'daemon',
  title: 'daemon',
  addresses: [address('http', 8765)],
  listeners: ['http'],
};

const connect: Part = {
  name: 'connect',
  title: 'connectors',
  addresses: [],
  listeners: ['metrics'],
};

/** In start order: each gets the addresses of those before it. */
export const parts: readonly Part[] = [db, queue, daemon];

/** With its connectors, if the data directory has any. */
export function partsOf(dataDir: string): readonly Part[] {
  return existsSync(connectorsFile(dataDir)) ? [...parts, connect] : parts;
}

export const connectorsFile = (dataDir: string) => join(dataDir, 'connectors.yaml');

function address(listener: string, port: number, scheme = 'http'): Address {
  return { listener, port, url: `${scheme}://127.0.0.1:${port}` };
}

/** Rewrites the advice of a server for users of `ctl up`. */
export function withUpFlags({ flags = {} }: Part, line: string): string {
  if (!line.startsWith(`${programName()}: `)) return line;
  return line.replaceAll(/--[a-z][a-z-]*/g, (flag) => flags[flag] ?? flag);
}

/** Address of a URL, in the form of `--listen`. */
export function addressOfUrl(url: string): string {
  return url.replace(/^[a-z]+:\/\//, '').replace(/\/.*$/, '');
}
