import { isIP } from 'node:net';
import { UsageError } from '../base/errors.js';

/** Where a server listens. */
export interface Address {
  /** A name or an IP address, without brackets. */
  host: string;
  /** 0 asks for any free port. */
  port: number;
}

export const addressExample = 'an address such as 127.0.0.1:8080';

/** Parses `host:port`; IPv6 addresses are in brackets: `[::1]:8080`. */
export function addressOf(text: string): Address {
  const refuse = (hint: string) =>
    new UsageError(`must be ${addressExample}, not ${JSON.stringify(text)}: ${hint}`);
  if (text.includes('/')) throw refuse('leave out the scheme and the path');
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):([^:]*)$/.exec(text);
  if (!match) throw refuse(shapeHint(text));
  const [, bracketed, plain, port] = match;
  if (bracketed !== undefined && isIP(bracketed.replace(/%.*$/, '')) !== 6) {
    throw refuse(`[${bracketed}] is not an IPv6 address`);
  }
  const host = bracketed ?? plain!;
  if (host === '') throw refuse('the host is missing; 0.0.0.0 listens on every interface');
  if (bracketed === undefined && !isHostName(host)) throw refuse(`"${host}" is not a host`);
  if (!/^\d{1,5}$/.test(port!) || Number(port) > 65_535) {
    throw refuse('the port must be a whole number from 0 to 65535');
  }
  return { host, port: Number(port) };
}

function shapeHint(text: string): string {
  if (isIP(text) === 6 || (text.match(/:/g) ?? []).length > 1) {
    return 'put an IPv6 address in brackets: [::1]:8080';
  }
  return 'the port is missing';
}

function isHostName(host: string): boolean {
  // Four numbers with dots are meant as an address, and 999.1.1.1 is none.
  if (/^[\d.]+$/.test(host)) return isIP(host) === 4;
  if (host.length > 253) return false;
  const labels = host.replace(/\.$/, '').split('.');
  return labels.every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i.test(label));
}

/** The text that `addressOf` reads. */
export function addressText({ host, port }: Address): string {
  return isIP(host.replace(/%.*$/, '')) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True when only this machine can reach a server that listens there. */
export function isLoopback(host: string): boolean {
  const plain = host
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase();
  if (plain === 'localhost' || plain.endsWith('.localhost')) return true;
  const v4 = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1];
  if (v4 !== undefined) return isIP(v4) === 4 && v4.startsWith('127.');
  return isIP(plain) === 6 && /^(0*:)*:?0*1$/.test(plain);
}
