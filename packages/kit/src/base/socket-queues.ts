import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** Bytes that the kernel holds for a TCP socket. */
interface Queues {
  /** Not acknowledged by the peer. */
  readonly sent: number;
  /** Received and not read. */
  readonly received: number;
}

/**
 * The socket queues of this machine, from /proc/net/tcp. Node counts bytes as written when the
 * kernel takes them, and the kernel may hold megabytes: a peer that reads steadily can look as if
 * it did not read for minutes.
 */
export class SocketQueues {
  readonly #byEnds = new Map<string, Queues>();

  constructor(tables: readonly string[]) {
    for (const table of tables) {
      for (const line of table.split('\n').slice(1)) {
        const [, local, remote, , queues] = line.trim().split(/\s+/);
        if (local === undefined || remote === undefined || queues === undefined) continue;
        const [sent, received] = queues.split(':').map((hex) => Number.parseInt(hex, 16));
        const ends = `${withoutPrefix(local)} ${withoutPrefix(remote)}`;
        this.#byEnds.set(ends, { sent: sent ?? 0, received: received ?? 0 });
      }
    }
  }

  /** Reads the tables; empty where the system has none, such as macOS and Windows. */
  static async read(): Promise<SocketQueues> {
    const files = ['/proc/net/tcp', '/proc/net/tcp6'];
    return new SocketQueues(
      await Promise.all(files.map((file) => readFile(file, 'latin1').catch(() => ''))),
    );
  }

  /**
   * Bytes on the way to the peer: sent and not acknowledged, and, if the peer is on this machine,
   * acknowledged and not read. 0 when that is not known.
   */
  heldFor({ localAddress, localPort, remoteAddress, remotePort }: Socket): number {
    if (localAddress === undefined || remoteAddress === undefined) return 0;
    const local = `${hexOf(localAddress)}:${hexOfPort(localPort!)}`;
    const remote = `${hexOf(remoteAddress)}:${hexOfPort(remotePort!)}`;
    const own = this.#byEnds.get(`${local} ${remote}`)?.sent ?? 0;
    return own + (this.#byEnds.get(`${remote} ${local}`)?.received ?? 0);
  }
}

// An IPv4 address inside IPv6 is written as IPv4, so that both ends of a connection match.
const mapped = /^0{16}FFFF0000/;

function withoutPrefix(end: string): string {
  return end.replace(mapped, '');
}

function hexOfPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}

/** As the kernel prints it: words of 32 bits in the order of a little-endian machine. */
function hexOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  if (!plain.includes(':')) return littleEndian(plain.split('.').map(Number));
  const [head = '', tail] = plain.split('%')[0]!.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const [first, last] = [groups(head), groups(tail ?? '')];
  const zeros = Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0');
  const bytes = [...first, ...(tail === undefined ? [] : zeros), ...last].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 255];
  });
  return [0, 4, 8, 12].map((at) => littleEndian(bytes.slice(at, at + 4))).join('');
}

function littleEndian(bytes: readonly number[]): string {
  return bytes
    .toReversed()
    .map((byte) => byte.toString(16).toUpperCase().padStart(2, '0'))
    .join('');
}
