import { resolve } from 'node:path';
import { UsageError } from '@millrace/kit/errors';

/** Address of a server. */
export interface ServerAddress {
  /** As given by the caller, for messages. */
  readonly url: string;
  readonly isSecure: boolean;
  /** Options for `net.connect`. */
  readonly place: { host: string; port: number } | { path: string };
}

const defaultPort = 5433;
const forms = 'grpc://host:port, grpcs://host:port or unix:/path/to/db.sock';

/**
 * Parses `grpc://host:port`, `grpcs://host:port` (TLS) or `unix:/path`. The default port is 5433.
 */
export function parseAddress(url: string): ServerAddress {
  if (url.startsWith('unix:')) return socketAddress(url);
  const match = /^(grpcs?):\/\/(\[[0-9A-Fa-f:.%]+\]|[^:/?#@[\]\s]+)(?::(\d{1,5}))?\/?$/.exec(url);
  if (!match) throw new UsageError(`"${url}" is not a database address; use ${forms}.`);
  const [, scheme, host, portText] = match;
  const port = portText === undefined ? defaultPort : Number(portText);
  if (port < 1 || port > 65_535) {
    throw new UsageError(`The port of "${url}" must be a whole number from 1 to 65535.`);
  }
  return {
    url,
    isSecure: scheme === 'grpcs',
    place: { host: host!.replace(/^\[(.*)\]$/, '$1'), port },
  };
}

function socketAddress(url: string): ServerAddress {
  // unix:///path and unix:/path are the same; unix:path is relative to the current directory.
  const given = url.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
  if (given === '') throw new UsageError(`"${url}" lacks the path of the socket.`);
  return { url, isSecure: false, place: { path: resolve(given) } };
}

/**
 * Parses the address of a server, or of several nodes of a cluster: `grpc://a:1,b:2,c:3` or an
 * array of addresses.
 */
export function parseAddresses(url: string | readonly string[]): ServerAddress[] {
  const urls = typeof url === 'string' ? split(url) : url.flatMap(split);
  const addresses = [...new Set(urls)].map(parseAddress);
  if (addresses.length === 0) throw new UsageError('The list of database addresses is empty.');
  if (addresses.some(({ isSecure }) => isSecure !== addresses[0]!.isSecure)) {
    throw new UsageError(`"${String(url)}" mixes grpc:// and grpcs://; use one of them.`);
  }
  return addresses;
}

/** The scheme of the first address is that of the others. A path of a socket may have commas. */
function split(url: string): string[] {
  const match = /^(grpcs?:\/\/)(.*)$/.exec(url.trim());
  if (!match?.[2]?.includes(',')) return [url.trim()];
  const [, scheme = '', hosts] = match;
  return hosts.split(',').map((host) => {
    const name = host.trim();
    return /^grpcs?:\/\//.test(name) ? name : scheme + name;
  });
}
