import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { Clock } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import {
  acpHostProgram,
  clearState,
  readState,
  writeLaunch,
  type HostCommand,
  type HostReply,
} from '../../acp-host/state.js';
import type { Driver, KnownAgent, Launch, ProcessView, Started } from './driver.js';
import { HeadlessDriver } from './headless.js';
import { acpSocket, sessionDirectory } from './session-files.js';

export interface AcpDriverParts {
  dataDir: string;
  clock: Clock;
  /** Called when a host has news. */
  onNews: () => void;
  /** The program of the host; for tests. */
  program?: string | undefined;
}

const replyLimitMs = 10_000;
/** Time for a cancelled turn to end. */
const cancelLimitMs = 2_000;
const cancelStepMs = 40;

/**
 * Runs agents over the Agent Client Protocol. Each is a child of its own small host process, which
 * outlives the daemon: the next daemon reads its state from a file and connects through a Unix
 * socket in the session's directory.
 */
export class AcpDriver implements Driver {
  readonly name = 'acp';
  readonly #processes: HeadlessDriver;
  readonly #links = new Map<string, Socket>();
  #isClosed = false;

  constructor(private readonly parts: AcpDriverParts) {
    this.#processes = new HeadlessDriver(parts.onNews);
  }

  start(launch: Launch): Promise<Started> {
    const { id, directory, file, args, cwd, acp } = launch;
    const socket = acpSocket(this.parts.dataDir, id);
    this.#unlink(id);
    rmSync(socket, { force: true });
    return this.#processes.start({
      ...launch,
      file: process.execPath,
      args: [this.parts.program ?? acpHostProgram, directory],
      input: '',
      prepare: () => {
        clearState(directory);
        writeLaunch(directory, { ...acp!, file, args, cwd, socket });
      },
    });
  }

  async inspect(agents: readonly KnownAgent[]): Promise<Map<string, ProcessView>> {
    const views = await this.#processes.inspect(agents);
    for (const [id, { pid }] of views) if (pid !== undefined) this.#link(id);
    return views;
  }

  async cancelTurn(id: string): Promise<void> {
    const { clock } = this.parts;
    const isInTurn = () => ['working', 'waiting'].includes(this.state(id)?.status ?? '');
    if (!isInTurn()) return;
    const until = clock.monotonic() + cancelLimitMs;
    const sent = this.call(id, { do: 'cancel' });
    await Promise.race([sent, clock.sleep(cancelLimitMs)]);
    while (isInTurn() && clock.monotonic() < until) await clock.sleep(cancelStepMs);
  }

  release(id: string): Promise<void> {
    this.#unlink(id);
    rmSync(acpSocket(this.parts.dataDir, id), { force: true });
    return this.#processes.release(id);
  }

  state(id: string) {
    return readState(sessionDirectory(this.parts.dataDir, id));
  }

  /** Sends one command to the host of an agent. */
  call(id: string, command: HostCommand): Promise<HostReply> {
    return new Promise((resolve, reject) => {
      const socket = connect(acpSocket(this.parts.dataDir, id));
      let text = '';
      socket.setEncoding('utf8');
      socket.setTimeout(replyLimitMs, () =>
        socket.destroy(new Error('the host of the agent does not answer')),
      );
      socket.on('connect', () => socket.write(`${JSON.stringify(command)}\n`));
      socket.on('data', (chunk: string) => {
        text += chunk;
        if (!text.includes('\n')) return;
        socket.end();
        resolve(JSON.parse(text) as HostReply);
      });
      socket.on('error', (error) => {
        // The host is starting or ending.
        const isAbsent = ['ENOENT', 'ECONNREFUSED'].includes(systemCode(error));
        if (isAbsent) resolve({ reply: 'refused', detail: 'its host does not listen' });
        else reject(error);
      });
      socket.on('close', () => reject(new Error('the host of the agent closed the connection')));
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const id of this.#links.keys()) this.#unlink(id);
  }

  /** Keeps a connection on which the host reports changes. */
  #link(id: string): void {
    if (this.#isClosed || this.#links.has(id)) return;
    const socket = connect(acpSocket(this.parts.dataDir, id));
    this.#links.set(id, socket);
    const command: HostCommand = { do: 'watch' };
    socket.on('connect', () => socket.write(`${JSON.stringify(command)}\n`));
    socket.on('data', () => this.parts.onNews());
    // A host that does not listen yet is tried again at the next inspection.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#links.get(id) === socket) this.#links.delete(id);
    });
    socket.unref();
  }

  #unlink(id: string): void {
    this.#links.get(id)?.destroy();
    this.#links.delete(id);
  }
}
