import type { Socket } from 'node:net';
import type { Clock } from '@millrace/kit/clock';
import { SocketQueues } from '@millrace/kit/socket-queues';

const maxAgeMs = 1_000;
let latest: { readonly at: number; readonly queues: Promise<SocketQueues> } | undefined;

/** What the kernel holds for a peer. Connections that ask at about the same time share a read. */
export async function kernelBytesFor(socket: Socket, clock: Clock): Promise<number> {
  const now = clock.monotonic();
  if (!latest || Math.abs(now - latest.at) > maxAgeMs) {
    latest = { at: now, queues: SocketQueues.read() };
  }
  return (await latest.queues).heldFor(socket);
}
