import type { DaemonSchema } from '@millrace/contract/daemon';
import type { World } from '@millrace/kit/world';
import { formatTimestamp } from '@millrace/kit/units';
import type { Questions } from '../questions/questions.js';
import type { Sessions } from '../sessions/port.js';
import { fail } from '../core/refusals.js';
import {
  channels,
  textOf,
  tidied,
  type Alert,
  type AlertSink,
  type InboxNote,
  type Once,
} from './alert.js';
import type { AlertStore, OutboxEntry } from './alert-store.js';
import type { Desktop } from './desktop.js';
import type { Webhook } from './webhook.js';

export interface NotifyParts extends World {
  store: AlertStore;
  sessions: Pick<Sessions, 'find'>;
  questions: Pick<Questions, 'get'>;
  /** As the settings are now. */
  channels: () => AlertChannels;
}

/** Undefined when the setting is off. */
export interface AlertChannels {
  desktop: Pick<Desktop, 'show'> | undefined;
  webhook: Pick<Webhook, 'offer'> | undefined;
}

/** Alerts: each becomes a note in the inbox, and goes to desktop and webhook as configured. */
export class Notify implements AlertSink {
  constructor(private readonly parts: NotifyParts) {}

  async raise(raw: Alert, once?: Once): Promise<void> {
    const { store, clock, random } = this.parts;
    const { desktop, webhook } = this.parts.channels();
    const alert = tidied(raw);
    const raisedAt = clock.now();
    const note: InboxNote = {
      id: random.ulid(raisedAt),
      ts: formatTimestamp(raisedAt),
      kind: alert.kind,
      severity: alert.severity,
      title: alert.title,
      body: alert.body,
      agent_id: alert.agentId,
      read: false,
      ...(alert.questionId !== undefined && { question_id: alert.questionId }),
    };
    const goes = channels[alert.kind];
    const outbox = goes.webhook && webhook ? await this.#entry(note, raisedAt) : undefined;
    if (!(await store.add(note, { once, outbox }))) return;
    if (outbox) webhook?.offer(outbox);
    if (goes.desktop) desktop?.show(alert);
  }

  /** Newest first. */
  list(which: { unread: boolean; limit: number }): Promise<InboxNote[]> {
    return this.parts.store.list(which);
  }

  async markRead(id: string): Promise<InboxNote> {
    const note = await this.parts.store.markRead(id);
    if (note) return note;
    throw fail('NOTE_NOT_FOUND', `Note "${id}" does not exist. List notes with: ctl inbox.`);
  }

  async #entry(note: InboxNote, raisedAt: number): Promise<OutboxEntry> {
    const { id, title, body, kind, ts, severity, question_id: question } = note;
    const sent: DaemonSchema<'WebhookNotification'> = {
      text: textOf(note),
      title,
      body,
      id,
      kind,
      ts,
      severity,
      agent: await this.#agent(note.agent_id),
      ...(question !== undefined && {
        question_id: question,
        question: this.parts.questions.get(question),
      }),
    };
    return { id, body: JSON.stringify(sent), raisedAt, tries: 0, nextAt: raisedAt };
  }

  async #agent(agentId: string | null): Promise<DaemonSchema<'NotifiedAgent'> | null> {
    const session = agentId === null ? undefined : await this.parts.sessions.find(agentId);
    return session ? { id: session.id, name: session.name, status: session.status } : null;
  }
}
