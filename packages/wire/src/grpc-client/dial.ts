import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { chunksOf, type ByteSource } from '../base/socket.js';

/** Where a server listens. */
export type Place = { readonly host: string; readonly port: number } | { readonly path: string };

/** TLS options of a client, as PEM. */
export interface ClientTls {
  readonly ca?: string | Uint8Array | undefined;
  readonly certificate?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** Expected name in the certificate, if it differs from the host. */
  readonly serverName?: string | undefined;
}

const readBytes = 64 * 1024;

/** Opens a connection; rejects when it fails or `signal` is aborted. */
export function dial(
  place: Place,
  tls: ClientTls | undefined,
  signal: AbortSignal,
): Promise<ByteSource> {
  return new Promise((resolve, reject) => {
    const source = tls ? chunksOf(openTls(place, tls)) : openPlain(place);
    const { socket } = source;
    const onAbort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const settle = (error?: Error) => {
      signal.removeEventListener('abort', onAbort);
      socket.off('error', settle);
      if (error) return reject(error);
      socket.setNoDelay(true);
      resolve(source);
    };
    socket.once('error', settle);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      const { alpnProtocol } = socket as Socket & { alpnProtocol?: string | false };
      if (!tls || alpnProtocol === 'h2') return settle();
      socket.destroy();
      settle(new Error('the server does not offer HTTP/2 over TLS'));
    });
  });
}

/** Reads into one buffer: Node would allocate 64 KiB for every read. */
function openPlain(place: Place): ByteSource {
  const buffer = Buffer.allocUnsafeSlow(readBytes);
  const callback = (end: number): boolean => {
    source.take(buffer, end);
    return true;
  };
  const socket = connect({ ...place, onread: { buffer, callback } });
  const source: ByteSource = { socket, take: () => undefined };
  return source;
}

function openTls(place: Place, { ca, certificate, key, serverName }: ClientTls): Socket {
  const name = serverName ?? ('host' in place ? place.host : '');
  return connectTls({
    ...place,
    ALPNProtocols: ['h2'],
    // An IP address is not allowed as SNI; it is verified as the host.
    ...(name !== '' && isIP(name) === 0 ? { servername: name } : {}),
    ...(ca === undefined ? {} : { ca: Buffer.from(ca) }),
    ...(certificate === undefined ? {} : { cert: Buffer.from(certificate) }),
    ...(key === undefined ? {} : { key: Buffer.from(key) }),
  });
}
