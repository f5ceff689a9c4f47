import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { systemCode } from '@millrace/kit/errors';

/** One of the servers that `ctl up` runs side by side. */
export interface Part {
  /** As in the listening lines: db, queue, daemon. */
  readonly name: string;
  /** As people say it. */
  readonly title: string;
  readonly addresses: readonly Address[];
  /** Whether its server is there to be started. */
  available(): Promise<boolean>;
  start(options: StartOptions): Promise<RunningPart>;
}

/** Where a part listens unless told otherwise. */
export interface Address {
  readonly listener: string;
  readonly port: number;
  readonly url: string;
}

export interface StartOptions {
  readonly dataDir: string;
}

export interface RunningPart {
  readonly listeners: readonly { readonly listener: string; readonly url: string }[];
  /** Settles when the part ends without having been asked to; rejects with the reason. */
  readonly ended: Promise<void>;
  /** Drains and stops. */
  stop(): Promise<void>;
}

/** What a server package exports under `./serve` to become a part. */
interface ServeModule {
  start(options: StartOptions): Promise<RunningPart>;
}

/** In the order they start; they stop in the opposite one. */
export const parts: readonly Part[] = [
  serverPart('db', 'database', '@millrace/db/serve', [
    address('grpc', 5433, 'grpc'),
    address('http', 8080),
  ]),
  serverPart('queue', 'queue', '@millrace/queue/serve', [address('http', 8081)]),
  serverPart('daemon', 'daemon', '@millrace/daemon/serve', [address('http', 8765)]),
];

function address(listener: string, port: number, scheme = 'http'): Address {
  return { listener, port, url: `${scheme}://127.0.0.1:${port}` };
}

/** A part whose server lives in a package of its own, loaded only when it is started. */
export function serverPart(
  name: string,
  title: string,
  specifier: string,
  addresses: readonly Address[],
): Part {
  return {
    name,
    title,
    addresses,
    available: async () => locate(specifier) !== null,
    async start(options) {
      const file = locate(specifier);
      if (file === null) throw new Error(`${specifier} is not built`);
      const served: unknown = await import(pathToFileURL(file).href);
      if (!isServeModule(served)) throw new Error(`${specifier} exports no start()`);
      return served.start(options);
    },
  };
}

function isServeModule(found: unknown): found is ServeModule {
  return (
    typeof found === 'object' &&
    found !== null &&
    'start' in found &&
    typeof found.start === 'function'
  );
}

const require = createRequire(import.meta.url);
const ABSENT = new Set(['MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED']);

function locate(specifier: string): string | null {
  try {
    return require.resolve(specifier);
  } catch (error) {
    if (ABSENT.has(systemCode(error))) return null;
    throw error;
  }
}
