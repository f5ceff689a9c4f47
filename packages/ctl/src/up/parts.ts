/** One of the servers that `ctl up` runs side by side. */
export interface Part {
  /** As in the listening lines, and the group of its `serve` command: db, queue, daemon. */
  readonly name: 'db' | 'queue' | 'daemon';
  /** As people say it. */
  readonly title: string;
  /** Where it listens unless told otherwise. */
  readonly addresses: readonly Address[];
  /** What it announces before it is ready. */
  readonly listeners: readonly string[];
  /** Flags of its own `serve` that `ctl up` calls by another name. */
  readonly flags?: Readonly<Record<string, string>>;
}

export interface Address {
  readonly listener: string;
  readonly port: number;
  readonly url: string;
}

/** One line that a server prints when it is ready. */
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

const queue: Part = {
  name: 'queue',
  title: 'queue',
  addresses: [address('http', 8081), address('metrics', 9464)],
  listeners: ['http', 'metrics'],
  flags: { '--listen': '--queue-listen' },
};

const daemon: Part = {
  name: 'daemon',
  title: 'daemon',
  addresses: [address('http', 8765)],
  listeners: ['http'],
};

/** In the order they start: each is told where those before it are. */
export const parts: readonly Part[] = [db, queue, daemon];

function address(listener: string, port: number, scheme = 'http'): Address {
  return { listener, port, url: `${scheme}://127.0.0.1:${port}` };
}

/** What a part tells whoever started it, for whoever runs `ctl up`. */
export function inWordsOfUp({ flags = {} }: Part, line: string): string {
  if (!line.startsWith('ctl: ')) return line;
  return line.replaceAll(/--[a-z][a-z-]*/g, (flag) => flags[flag] ?? flag);
}

/** The address behind a URL, as `--listen` takes it. */
export function addressOfUrl(url: string): string {
  return url.replace(/^[a-z]+:\/\//, '').replace(/\/.*$/, '');
}
