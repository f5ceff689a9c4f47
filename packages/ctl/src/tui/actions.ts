import { Refusal } from '@millrace/kit/errors';
import { spawnRequest } from '../agent/spawning.js';
import { diffText } from '../agent/workbench.js';
import type { Paint } from '../render/paint.js';
import { printable, safeForScreen } from '../render/text.js';
import type { DaemonApi } from '../daemon/api.js';
import type { QueueApi } from '../queue/api.js';
import type { LiveData, Parts } from './live-data.js';

export interface Servers {
  readonly daemon: DaemonApi;
  readonly queue: QueueApi;
}

/** What the right side of the fleet shows of the selected agent. */
export type PreviewMode = 'screen' | 'logs' | 'diff';

/** Everything that the screen can change. Each returns the message for the status line. */
export class Actions {
  constructor(
    private readonly servers: Servers,
    private readonly live: LiveData,
  ) {}

  async toggleBackend(id: string): Promise<string> {
    const row = this.#data.registry?.backends.find((backend) => backend.id === id);
    const enabled = row?.enabled !== true;
    const call = { path: { id }, body: { enabled } };
    const after = await this.servers.daemon.call('updateBackend', call);
    this.live.read('registry');
    return `${after.id} is now ${after.enabled ? 'enabled' : 'disabled'}.`;
  }

  async makeDefault(id: string): Promise<string> {
    await this.servers.daemon.call('setDefaultBackend', { body: { id } });
    this.live.read('registry');
    return `The default is now ${id}.`;
  }

  async togglePause(queue: string): Promise<string> {
    const found = this.#data.queues?.find(({ name }) => name === queue);
    const isPaused = found?.summary.paused === true;
    await this.servers.queue.call(isPaused ? 'resumeQueue' : 'pauseQueue', { queue });
    this.live.read('queues');
    return isPaused ? `Resumed ${queue}.` : `Paused ${queue}.`;
  }

  deadIn(queue: string): number {
    return this.#data.queues?.find(({ name }) => name === queue)?.summary.dlq_depth ?? 0;
  }

  /** Starts a job, because a large DLQ takes longer than one call may. */
  async redrive(queue: string): Promise<string> {
    const { body } = await this.servers.queue.call('redriveDlq', {
      queue,
      query: { async: 'true' },
      body: { filter: {} },
    });
    this.live.read('queues');
    if ('count' in body) return `Redrove ${body.count} tasks of ${queue}.`;
    return `Redrive of ${queue} started as job ${body.job.id}.`;
  }

  async answer(id: string, body: { option_id: string } | { text: string }): Promise<string> {
    await this.servers.daemon.call('answerQuestion', { path: { id }, body });
    this.live.read('questions');
    return 'Answered.';
  }

  async send(id: string, text: string): Promise<string> {
    const after = await this.servers.daemon.call('sendToSession', { path: { id }, body: { text } });
    this.live.read('sessions');
    return `${after.name} received it and is ${after.status}.`;
  }

  /** Lines of the selected agent: its terminal in colour, its log, or its changes. */
  async preview(id: string, mode: PreviewMode, limit: number, paint: Paint): Promise<string[]> {
    const { daemon } = this.servers;
    const path = { id };
    if (mode === 'diff') {
      const text = diffText(await daemon.call('getSessionDiff', { path }), paint);
      return text === '' ? ['No changes.'] : text.trimEnd().split('\n').slice(0, limit);
    }
    const session = this.#data.sessions?.find((each) => each.id === id);
    if (mode === 'screen' && session?.driver === 'tmux' && session.pid !== null) {
      const { lines } = await daemon.call('getSessionScreen', { path });
      return lines.slice(-limit).map((line) => safeForScreen(line));
    }
    const { lines } = await daemon.call('getSessionOutput', { path, query: { limit } });
    return lines.length === 0 ? ['No output yet.'] : lines.map((line) => printable(line));
  }

  async spawn(prompt: string): Promise<string> {
    const session = await this.servers.daemon.call('spawnSession', {
      body: spawnRequest(prompt, {}),
    });
    this.live.read('sessions');
    return `Started ${session.name} on ${session.backend} in ${session.workdir}.`;
  }

  async merge(id: string): Promise<string> {
    const merged = await this.servers.daemon.call('mergeSession', { path: { id }, body: {} });
    this.live.read('sessions');
    return `Merged ${merged.branch} into ${merged.base}.`;
  }

  async serve(id: string): Promise<string> {
    const { url } = await this.servers.daemon.call('serveSession', { path: { id } });
    this.live.read('sessions');
    return `Served at ${url}`;
  }

  async stop(id: string): Promise<string> {
    const after = await this.servers.daemon.call('stopSession', { path: { id } });
    this.live.read('sessions');
    return `${after.name} is ${after.status}.`;
  }

  async markRead(ids: readonly string[]): Promise<string> {
    for (const id of ids) await this.servers.daemon.call('markNoteRead', { path: { id } });
    this.live.read('notes');
    return ids.length === 1 ? 'Marked as read.' : `Marked ${ids.length} as read.`;
  }

  /** The session, when it has a terminal to attach to. */
  attachable(id: string): string {
    const session = this.#data.sessions?.find((each) => each.id === id);
    if (session?.driver === 'tmux') return id;
    throw new Refusal(
      'SESSION_STATE',
      `${session?.name ?? id} uses the ${session?.driver ?? 'unknown'} driver and has no terminal.`,
    );
  }

  get #data(): Partial<Parts> {
    return this.live.snapshot().data;
  }
}
