import { lookup } from 'node:dns/promises';
import type { Server } from 'node:net';
import { addressOf, addressText } from '../config/address.js';
import type { Address } from '../config/address.js';
import { UsageError, messageOf, systemCode } from '../base/errors.js';
import type { HttpApp } from './app.js';

export interface Listener {
  /** With the bound port, also for port 0. */
  url: string;
  /** Destroys open connections. For a graceful shutdown, drain the app. */
  close(): Promise<void>;
}

export interface ListenOptions {
  /** The flag that sets this address, for the advice in error messages. */
  flag?: string;
}

/** Listens on `host:port`; port 0 means any free port. */
export async function listen(
  app: Pick<HttpApp, 'server'>,
  address: string,
  { flag = '--listen' }: ListenOptions = {},
): Promise<Listener> {
  const { host, port } = parse(address, flag);
  const { server } = app;
  const bound = await listenAt(server.node, { host, port }, flag);
  return {
    url: urlOf(bound, 'setSecureContext' in server.node ? 'https' : 'http'),
    close: async () => {
      const closed = server.close();
      server.closeAll();
      await closed;
    },
  };
}

/** Makes a server listen; resolves with the bound port. */
export async function listenAt(server: Server, address: Address, flag: string): Promise<Address> {
  const { host, port } = address;
  try {
    // Listens on one address, also when "localhost" has two.
    const resolved = (await lookup(host)).address;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: resolved, port }, () => {
        server.removeListener('error', reject);
        resolve();
      });
    });
  } catch (error) {
    throw listenError(error, addressText(address), flag);
  }
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server has no port');
  return { host, port: bound.port };
}

function parse(text: string, flag: string): Address {
  try {
    return addressOf(text);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`${flag} ${error.message}`);
  }
}

/** The URL of a server on this address. */
export function urlOf(address: Address, scheme = 'http'): string {
  return `${scheme}://${addressText(address)}`;
}

/** A usage error where the user can fix the cause. */
export function listenError(error: unknown, address: string, flag = '--listen'): unknown {
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return new UsageError(
        `${address} is already in use: stop the other server or pass ${flag} host:port`,
      );
    case 'EACCES':
      return new UsageError(
        `this user may not listen on ${address}: ` +
          `pass ${flag} host:port with a port above 1023`,
      );
    case 'EADDRNOTAVAIL':
      return new UsageError(
        `${address} is not an address of this machine: pass ${flag} with one that is`,
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new UsageError(`The host of ${address} is not known: pass ${flag} host:port`);
    default:
      return error instanceof Error
        ? error
        : new Error(`Could not listen on ${address}: ${messageOf(error)}`);
  }
}

export interface Announcement {
  component: string;
  listener: string;
  url: string;
}

/** Prints the address of a listener as one line of JSON on stdout. */
export function announce(
  { component, listener, url }: Announcement,
  write: (line: string) => void = (line) => process.stdout.write(line),
): void {
  write(`${JSON.stringify({ event: 'listening', component, listener, url })}\n`);
}
