import { UsageError } from '@millrace/kit/errors';
import { parseAddress, type ServerAddress } from './address.js';

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
