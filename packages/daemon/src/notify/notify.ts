import type { DaemonSchema } from '@millrace/contract/daemon';
import type { World } from '@millrace/kit/world';
import { formatTimestamp } from '@millrace/kit/units';
import type { Database } from '@millrace/engine';
import { parseTarget, webhookPolicy, type Outbound } from '@millrace/kit/outbound';
import type { Log } from '@millrace/kit/log';
import type { Questions } from '../questions/questions.js';
import type { Sessions } from '../sessions/port.js';
import { fail } from '../core/api.js';
import type { DaemonSettings } from '../core/settings.js';
import {
  channels,
  textOf,
  tidied,
  AlertStore,
  type Alert,
  type AlertSink,
  type InboxNote,
  type Once,
  type OutboxEntry,
} from './alert-store.js';
import { Desktop } from './desktop.js';
import { Webhook, webhookKey } from './webhook.js';
import { webhookSecretFile } from '../storage/data-files.js';
import { SessionAlerts } from './session-alerts.js';

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

export type { AlertSink } from './alert-store.js';

export type NotifySettings = DaemonSettings['notify'];

export interface NotifyOptions extends World {
  settings: NotifySettings;
  database: Database;
  dataDir: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** Must refuse link-local addresses: `webhookGuard` of the kit does. */
  outbound: Pick<Outbound, 'request'>;
  sessions: Sessions;
  questions: Pick<Questions, 'get' | 'onAdded' | 'openOf'>;
  platform?: NodeJS.Platform;
}

export interface OpenNotify {
  notify: Notify;
  /** Changes the settings; the outbox goes to the new webhook. */
  apply(settings: NotifySettings): Promise<void>;
  close(): Promise<void>;
}

/** Opens the inbox, resumes the outbox, and watches the sessions. */
export async function openNotify(options: NotifyOptions): Promise<OpenNotify> {
  const { database, sessions, questions, clock, random, log } = options;
  const store = new AlertStore(database);
  let services: Services | undefined;
  const notify = new Notify({
    clock,
    random,
    log,
    store,
    sessions,
    questions,
    channels: () => ({ desktop: services?.desktop, webhook: services?.webhook }),
  });
  const apply = async (settings: NotifySettings) => {
    await services?.close();
    services = servicesOf({ ...options, settings }, store, notify);
    await services.start();
  };
  const close = async () => services?.close();
  try {
    await apply(options.settings);
  } catch (error) {
    await close();
    throw error;
  }
  return { notify, apply, close };
}

type Services = ReturnType<typeof servicesOf>;

/** What depends on the settings. */
function servicesOf(options: NotifyOptions, store: AlertStore, notify: Notify) {
  const { settings, dataDir, sessions, questions, outbound, clock, random, log } = options;
  const key = webhookKey(settings.webhook_secret, { file: webhookSecretFile(dataDir), random });
  const url = urlToCall(settings, log);
  const webhook = url ? new Webhook({ url, key, store, outbound, clock, random, log }) : undefined;
  const { environment, platform } = options;
  const desktop = settings.enabled
    ? new Desktop({ clock, log, environment, cwd: dataDir, ...(platform && { platform }) })
    : undefined;
  const alerts = new SessionAlerts({
    clock,
    log,
    sessions,
    questions,
    alerts: notify,
    deleteMarks: (agentId) => store.deleteMarks(agentId),
    stuckAfterMs: settings.stuck_after,
  });
  return {
    desktop,
    webhook,
    start: async () => {
      await webhook?.start();
      await alerts.start();
    },
    close: async () => {
      await alerts.close();
      await Promise.all([webhook?.close(), desktop?.close()]);
    },
  };
}

/** Undefined when no webhook is configured. Warns at start when the URL can never work. */
function urlToCall({ webhook_enabled, webhook_url }: NotifySettings, log: Log) {
  if (!webhook_enabled) return undefined;
  if (webhook_url === '') {
    log.warn({}, 'notify.webhook_enabled is on but notify.webhook_url is empty: nothing is sent');
    return undefined;
  }
  const parsed = parseTarget(webhook_url);
  if (!parsed.ok) log.warn({ reason: parsed.reason }, 'notify.webhook_url cannot be called');
  else if (parsed.target.isAddress) {
    const denyReason = webhookPolicy.denyReason(parsed.target.host);
    if (denyReason) log.warn({ reason: denyReason }, 'notify.webhook_url cannot be called');
  }
  return webhook_url;
}
