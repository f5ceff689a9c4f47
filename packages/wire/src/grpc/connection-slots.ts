import type { Socket } from 'node:net';
import type { ConnectionLimit, ConnectionSlot } from '@millrace/kit/connection-limit';

/** The slots of accepted sockets. A secure socket has the slot of the one it was made of. */
export class ConnectionSlots {
  readonly #bySocket = new WeakMap<Socket, ConnectionSlot>();
  readonly #byAddress = new Map<string, ConnectionSlot>();

  /** Counts an accepted socket until it closes. */
  admit(limit: ConnectionLimit | undefined, socket: Socket): void {
    if (!limit) return;
    const slot = limit.admit(socket);
    const address = addressOf(socket);
    this.#bySocket.set(socket, slot);
    // A Unix socket has no address, and is never secure.
    if (address !== undefined) this.#byAddress.set(address, slot);
    socket.on('close', () => {
      slot.close();
      if (address !== undefined) this.#byAddress.delete(address);
    });
  }

  of(socket: Socket): ConnectionSlot | undefined {
    const known = this.#bySocket.get(socket);
    if (known) return known;
    const address = addressOf(socket);
    return address === undefined ? undefined : this.#byAddress.get(address);
  }
}

function addressOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remoteAddress === undefined ? undefined : `${remoteAddress} ${remotePort}`;
}
