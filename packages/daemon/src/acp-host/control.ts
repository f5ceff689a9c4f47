import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { messageOf } from '@millrace/kit/errors';
import type { HostCommand, HostReply } from './state.js';

const maxLineLength = 4 * 1024 * 1024;

/** The Unix socket at which the daemon finds the host: one line of JSON each way. */
export class Control {
  readonly #server: Server;
  readonly #watchers = new Set<Socket>();

  constructor(handle: (command: Exclude<HostCommand, { do: 'watch' }>) => HostReply) {
    this.#server = createServer((socket) => this.#serve(socket, handle));
  }

  listen(path: string): Promise<void> {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    rmSync(path, { force: true });
    // The socket is made with the mode that the mask leaves, so there is no moment of a wider one.
    const mask = process.umask(0o177);
    return new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, () => {
        process.umask(mask);
        chmodSync(path, 0o600);
        resolve();
      });
    });
  }

  /** Notifies connected daemons that the state has changed. */
  changed(): void {
    for (const socket of this.#watchers) socket.write(lineOf({ reply: 'changed' }));
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#watchers) socket.destroy();
  }

  #serve(
    socket: Socket,
    handle: (command: Exclude<HostCommand, { do: 'watch' }>) => HostReply,
  ): void {
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('error', () => this.#watchers.delete(socket));
    socket.on('close', () => this.#watchers.delete(socket));
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      if (rest.length > maxLineLength) return socket.destroy();
      for (const line of lines) socket.write(lineOf(this.#answer(socket, line, handle)));
    });
  }

  #answer(
    socket: Socket,
    line: string,
    handle: (command: Exclude<HostCommand, { do: 'watch' }>) => HostReply,
  ): HostReply {
    try {
      const command = JSON.parse(line) as HostCommand;
      if (command.do !== 'watch') return handle(command);
      this.#watchers.add(socket);
      return { reply: 'taken' };
    } catch (error) {
      return { reply: 'refused', detail: messageOf(error) };
    }
  }
}

function lineOf(reply: HostReply): string {
  return `${JSON.stringify(reply)}\n`;
}
